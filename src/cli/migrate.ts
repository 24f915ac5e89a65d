import { setTimeout as delay } from 'node:timers/promises'
import { MigrationExecutor, type DataSource } from 'typeorm'
import { isLockTimeout } from '../db/connection/connection-errors.ts'
import { closeDataSource } from '../db/connection/data-source.ts'
import { MIGRATION_STATEMENT_TIMEOUT_MS, type Pooler } from '../db/connection/session-limits.ts'
import { connect } from '../process/open-database.ts'
import { loadConfig } from '../config/load.ts'
import type { Arguments, Output } from './command-line/command.ts'

/** For another transaction that keeps a table locked. */
const LOCKED_TIMEOUT_MS = 600_000

/** The traffic that waited for the same table runs meanwhile. */
const LOCKED_RETRY_DELAY_MS = 3_000

/** `posthorn migrate`. */
export async function runMigrate(_args: Arguments, { print }: Output): Promise<number> {
  const { databaseUrl, databasePooler } = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  const applied = await migrate(databaseUrl, databasePooler)
  print(applied.length === 0 ? 'The database is up to date.' : `Applied: ${applied.join(', ')}`)
  return 0
}

/**
 * Applies what is missing and returns the names of the migrations applied. A migration that cannot have a table's lock
 * within two seconds is tried again for ten minutes; traffic runs between the tries.
 *
 * @throws the error of the statement that failed; the migrations before it stay applied
 */
export async function migrate(databaseUrl: string, pooler: Pooler = 'none'): Promise<string[]> {
  const dataSource = await connect({
    url: databaseUrl,
    poolSize: 2,
    pooler,
    statementTimeoutMs: MIGRATION_STATEMENT_TIMEOUT_MS,
    // An index that is created concurrently waits for every older transaction, and nothing waits for it.
    lockTimeoutMs: 0,
  })
  try {
    const before = new Set(await appliedMigrations(dataSource))
    await applyMigrations(dataSource)
    return (await appliedMigrations(dataSource)).filter((name) => !before.has(name))
  } finally {
    await closeDataSource(dataSource)
  }
}

async function applyMigrations(dataSource: DataSource): Promise<void> {
  const deadlineMs = performance.now() + LOCKED_TIMEOUT_MS
  for (;;) {
    try {
      await dataSource.runMigrations()
      return
    } catch (error) {
      if (!isLockTimeout(error) || performance.now() > deadlineMs) throw error
    }
    await delay(LOCKED_RETRY_DELAY_MS)
  }
}

/** Oldest first. */
async function appliedMigrations(dataSource: DataSource): Promise<string[]> {
  const applied = await new MigrationExecutor(dataSource).getExecutedMigrations()
  return applied.map(({ name }) => name).reverse()
}
