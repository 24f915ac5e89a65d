import type { DataSource, EntityManager } from 'typeorm'
import { DatabaseClient } from './database-client.ts'
import { LONG_STATEMENT_TIMEOUT_MS } from './session-limits.ts'
import { sql } from './db.ts'

/** Raises the time limit of the statements that follow, here and in the server, until the transaction ends. */
export async function allowLongerStatements(
  manager: EntityManager,
  timeoutMs = LONG_STATEMENT_TIMEOUT_MS,
): Promise<void> {
  const connection: unknown = await manager.queryRunner?.connect()
  if (!(connection instanceof DatabaseClient)) throw new Error('longer statements need a transaction')
  connection.raiseStatementTimeout(timeoutMs)
  await sql(`SELECT set_config('statement_timeout', :timeout, true)`, { timeout: String(timeoutMs) }).rows(
    manager,
  )
}

/** A transaction whose statements may all take longer. */
export function transactLonger<T>(
  dataSource: DataSource,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  return dataSource.transaction(async (manager) => {
    await allowLongerStatements(manager)
    return work(manager)
  })
}
