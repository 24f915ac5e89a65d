import type { DataSource } from 'typeorm'
import { createBatchedStatement } from '../db/batched-statement.ts'
import { countWebhooksOfEach } from '../db/queries/webhooks.ts'
import { createTtlCache } from '../ttl-cache.ts'

/** Returns how many deliveries an event of the organisation has at most; Infinity where that cannot be read in time. */
export type FanOut = (organisationId: string) => Promise<number>

/** How long a count is used. Webhooks are created one by one, so few are added meanwhile. */
const COUNT_TTL_MS = 10_000

/** Above this, expired counts are dropped. */
const MAX_COUNTS = 10_000

/** An event waits this long for a count. Then it is published as one of unknown size. */
const COUNT_TIMEOUT_MS = 1_000

/** Builds the function: the webhooks of an organisation are counted once per COUNT_TTL_MS while it publishes. */
export function createFanOut(dataSource: DataSource): FanOut {
  const counts = createTtlCache<number>({ ttlMs: COUNT_TTL_MS, maxEntries: MAX_COUNTS })
  const count = createBatchedStatement<string, number>({
    runAll: (organisationIds) => countWebhooksOfEach(dataSource, organisationIds),
    runOne: async (organisationId) =>
      (await countWebhooksOfEach(dataSource, [organisationId]))[0] ?? Infinity,
    maxConcurrent: 2,
    maxBatchSize: 100,
    timeoutMs: COUNT_TIMEOUT_MS,
  })
  // Where the database is down, the commit that follows says so.
  const find = (organisationId: string): Promise<{ value: number } | null> =>
    count(organisationId).then(
      (value) => ({ value }),
      () => null,
    )
  return async (organisationId) => (await counts(organisationId, () => find(organisationId))) ?? Infinity
}
