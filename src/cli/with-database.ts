import type { DataSource } from 'typeorm'
import type { Config } from '../config/load.ts'
import { closeDataSource } from '../db/connection/data-source.ts'
import { LONG_STATEMENT_TIMEOUT_MS } from '../db/connection/session-limits.ts'
import { createLogger } from '../observability/logger.ts'
import { openDatabase } from '../process/open-database.ts'
import type { AuditActor } from '../db/queries/audit.ts'

/** For a command that ends by itself: opens the database, which has to be up to date, and closes it at the end. */
export async function withDatabase<T>(
  { databaseUrl, databasePooler }: Pick<Config, 'databaseUrl' | 'databasePooler'>,
  work: (dataSource: DataSource) => Promise<T>,
): Promise<T> {
  // Silent, since standard output is the command's: a connection that breaks while idle matters to the next query only.
  const dataSource = await openDatabase(
    {
      databaseUrl,
      databasePooler,
      databasePoolSize: 2,
      // A command may take longer than a request.
      statementTimeoutMs: LONG_STATEMENT_TIMEOUT_MS,
    },
    createLogger({ level: 'silent' }),
  )
  try {
    return await work(dataSource)
  } finally {
    await closeDataSource(dataSource)
  }
}

/**
 * The actor at the command line: the holder of the database's address, who has no member. `actor` distinguishes the
 * entries of one command from those of the others.
 */
export function commandLineActor(organisationId: string, actor?: string): AuditActor {
  const withoutMember = { memberId: null, apiKeyId: null, address: null, requestId: null }
  return { organisationId, ...withoutMember, ...(actor === undefined ? {} : { actor }) }
}
