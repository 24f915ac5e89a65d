import type { DataSource } from 'typeorm'
import type { Config } from '../config/load.ts'
import { transactLonger } from '../db/longer-statements.ts'
import { countPending } from '../db/queries/backlog.ts'
import { createBacklogLimit } from '../events/backlog-limit.ts'
import { createPublisher, type Publisher } from '../events/publish.ts'
import type { Commits } from '../deliveries/protocol/commit-events.ts'
import type { Logger } from '../observability/logger.ts'

/** Builds the publisher of a process, with its limit of waiting deliveries.  */
export function createPublishing(
  dataSource: DataSource,
  config: Pick<Config, 'publishBacklogLimit'>,
  { commits, logger }: { commits: Commits; logger: Logger },
): Publisher {
  const backlog = createBacklogLimit({
    limit: config.publishBacklogLimit,
    count: (limit) => transactLonger(dataSource, (manager) => countPending(manager, limit)),
    logger,
  })
  return createPublisher(dataSource, commits, backlog)
}
