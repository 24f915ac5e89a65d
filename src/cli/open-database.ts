import type { DataSource } from 'typeorm'
import type { Config } from '../config.ts'
import { createDataSource } from '../db/data-source.ts'
import type { Logger } from '../logger.ts'

/** Connects, and refuses a database that has not been brought up to date. */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'databasePoolSize'>,
  logger: Logger,
): Promise<DataSource> {
  const dataSource = createDataSource({
    url: config.databaseUrl,
    poolSize: config.databasePoolSize,
    onIdleError: (error) =>
      logger.warn({ event: 'database.connection_lost', err: error }, 'database.connection_lost'),
  })
  await dataSource.initialize()
  if (await dataSource.showMigrations()) {
    await dataSource.destroy()
    throw new Error('The database is not up to date: run `posthorn migrate` first.')
  }
  return dataSource
}
