import type { DataSource } from 'typeorm'
import type { Config } from '../config/load.ts'
import { closeDataSource, createDataSource, type DatabaseOptions } from '../db/connection/data-source.ts'
import { codeOf } from '../db/connection/connection-errors.ts'
import { createDatabaseClock, readDatabaseMs, type DatabaseClock } from '../db/connection/database-clock.ts'
import type { Logger } from '../observability/logger.ts'
import type { Stack } from './process-end.ts'
import { describeError } from './visible-text.ts'

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

type ConnectOptions = Omit<DatabaseOptions, 'onIdleError'> & { logger?: Logger }

/**
 * Opens the pool to the database of `variable`. A `logger` gets each idle connection that breaks. Throws an error that says in
 * words why that is impossible.
 */
export async function connect(
  { logger, ...options }: ConnectOptions,
  variable = 'DATABASE_URL',
): Promise<DataSource> {
  const onIdleError = (error: Error): void => logger?.warn({ event: 'database.connection_lost', err: error })
  try {
    return await createDataSource({ ...options, onIdleError }).initialize()
  } catch (error) {
    throw new Error(describeRefusal(options.url, error, variable), { cause: error })
  }
}

/** The user name and the password of the URL are left out; what the server answers names the user at most. */
function describeRefusal(databaseUrl: string, error: unknown, variable: string): string {
  const { hostname, port, pathname, searchParams } = new URL(databaseUrl)
  const host = searchParams.get('host') ?? (hostname === '' ? 'localhost' : hostname)
  const address = `${host}:${port === '' ? '5432' : port}`
  const reason = describeError(error)
  return [
    `No connection to PostgreSQL at ${address}${pathname}, the address in ${variable}: ${reason}.`,
    cureOf(codeOf(error), address, variable),
  ].join('\n')
}

/** By the code of the system, or the SQLSTATE of PostgreSQL. */
function cureOf(code: string, address: string, variable: string): string {
  if (code === 'ECONNREFUSED')
    return `Nothing listens at ${address}: start PostgreSQL, or correct ${variable}.`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `The name of that host is unknown: correct ${variable}.`
  if (code.startsWith('28'))
    return `Correct the user or the password in ${variable}, or let the server accept them.`
  if (code === '3D000') return `Create that database, or correct the name in ${variable}.`
  if (code === '08P01')
    return variable === 'DATABASE_URL'
      ? 'Behind a pooler such as PgBouncer, set DATABASE_POOLER=transaction.'
      : 'Connect to PostgreSQL itself: a pooler such as PgBouncer gives no session.'
  return `Check ${variable} and the network between; \`posthorn doctor\` examines more.`
}
