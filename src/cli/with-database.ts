import type { DataSource } from 'typeorm'
import { createLogger } from '../logger.ts'
import { openDatabase } from './open-database.ts'

/** For a command that ends by itself: opens the database, which has to be up to date, and closes it at the end. */
export async function withDatabase<T>(
  databaseUrl: string,
  work: (dataSource: DataSource) => Promise<T>,
): Promise<T> {
  // Silent, since standard output is the command's: a connection that breaks while idle matters to the next query only.
  const dataSource = await openDatabase(
    { databaseUrl, databasePoolSize: 2 },
    createLogger({ level: 'silent' }),
  )
  try {
    return await work(dataSource)
  } finally {
    await dataSource.destroy()
  }
}
