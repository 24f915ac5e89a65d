import type { DataSource } from 'typeorm'
import type { Config } from '../../config/load.ts'
import { closeDataSource, createDataSource } from '../../db/connection/data-source.ts'
import { CHECK_TIMEOUT_MS } from './run-checks.ts'

/** The connections of all checks to the database. */
export type DatabaseAccess = {
  /** Opens them with the first call. Rejects where the database cannot be reached. */
  open(config: Pick<Config, 'databaseUrl' | 'databasePooler'>): Promise<DataSource>
  /** Never rejects. */
  close(): Promise<void>
}

/** Two are needed to find a pooler; the others let checks run at the same time. */
const POOL_SIZE = 4

export function createDatabaseAccess(): DatabaseAccess {
  let opening: Promise<DataSource> | null = null
  return {
    open({ databaseUrl, databasePooler }) {
      opening ??= createDataSource({
        url: databaseUrl,
        poolSize: POOL_SIZE,
        pooler: databasePooler,
        // Both end before the check does, so that the reason is shown.
        connectTimeoutMs: CHECK_TIMEOUT_MS - 500,
        statementTimeoutMs: CHECK_TIMEOUT_MS - 500,
      }).initialize()
      return opening
    },
    async close() {
      try {
        if (opening !== null) await closeDataSource(await opening)
      } catch {
        // It was never open.
      }
    },
  }
}
