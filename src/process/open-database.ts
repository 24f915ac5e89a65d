import type { DataSource } from 'typeorm'
import type { Config } from '../config/load.ts'
import { closeDataSource } from '../db/connection/data-source.ts'
import { createDatabaseClock, readDatabaseMs, type DatabaseClock } from '../db/connection/database-clock.ts'
import type { Logger } from '../observability/logger.ts'
import { connect } from './connect.ts'
import type { Stack } from './shutdown-stack.ts'

type DatabaseConfig = Pick<Config, 'databaseUrl' | 'databasePoolSize' | 'databasePooler'> & {
  /** Time-out of one statement; by default that of requests. */
  statementTimeoutMs?: number
}

/** Connects, and refuses a database that has not been brought up to date. */
export async function openDatabase(config: DatabaseConfig, logger: Logger): Promise<DataSource> {
  const dataSource = await connect({
    url: config.databaseUrl,
    poolSize: config.databasePoolSize,
    pooler: config.databasePooler,
    ...(config.statementTimeoutMs !== undefined && { statementTimeoutMs: config.statementTimeoutMs }),
    logger,
  })
  if (await dataSource.showMigrations()) {
    await closeDataSource(dataSource)
    throw new Error('The database is not up to date: run `posthorn migrate` first.')
  }
  return dataSource
}

/** Measures the database's clock, and repeats that until `running` is stopped. */
export async function startDatabaseClock(
  dataSource: DataSource,
  logger: Logger,
  running: Stack,
): Promise<DatabaseClock> {
  const clock = createDatabaseClock({ readDatabaseMs: () => readDatabaseMs(dataSource), logger })
  running.push('the clock', () => Promise.resolve().then(clock.stop))
  await clock.start()
  return clock
}
