import { Connection } from '@temporalio/client'
import type { DataSource } from 'typeorm'
import type { Config } from '../../config/load.ts'
import { closeDataSource, createDataSource } from '../../db/connection/data-source.ts'
import { readTemporalCredentials, type CREDENTIAL_SETTINGS } from '../../process/setting-files.ts'
import { CHECK_TIMEOUT_MS, DATABASE_CHECKS_AT_ONCE } from './check.ts'

/** What all checks share. `open` connects with its first call, and rejects where that is impossible. */
type Access<Settings, Opened> = {
  open(config: Settings): Promise<Opened>
  /** Never rejects. */
  close(): Promise<void>
}

/** The connections of all checks to a database. */
export type DatabaseAccess = Access<Pick<Config, 'databaseUrl' | 'databasePooler'>, DataSource>

/** The connection of all checks to Temporal. */
export type TemporalAccess = Access<
  Pick<Config, 'temporalAddress' | (typeof CREDENTIAL_SETTINGS)[number]>,
  Connection
>

/** Ends before the check does, so that the reason is shown. */
const CONNECT_TIMEOUT_MS = CHECK_TIMEOUT_MS - 500

/** A check runs two statements at the same time at most, and so waits for no other. */
const POOL_SIZE = 2 * DATABASE_CHECKS_AT_ONCE

/** Ends before the statement does, so that the reason is shown. */
const LOCK_TIMEOUT_MS = 2_000

function createAccess<Settings, Opened>(
  connect: (config: Settings) => Promise<Opened>,
  close: (opened: Opened) => Promise<void>,
): Access<Settings, Opened> {
  let opening: Promise<Opened> | null = null
  return {
    open: (config) => (opening ??= connect(config)),
    async close() {
      // Where it was never open there is nothing to close.
      await opening?.then(close).catch(() => undefined)
    },
  }
}

export function createDatabaseAccess(): DatabaseAccess {
  return createAccess(
    ({ databaseUrl, databasePooler }) =>
      createDataSource({
        url: databaseUrl,
        poolSize: POOL_SIZE,
        pooler: databasePooler,
        connectTimeoutMs: CONNECT_TIMEOUT_MS,
        statementTimeoutMs: CONNECT_TIMEOUT_MS,
        lockTimeoutMs: LOCK_TIMEOUT_MS,
      }).initialize(),
    closeDataSource,
  )
}

export function createTemporalAccess(): TemporalAccess {
  return createAccess(
    async (config) =>
      Connection.connect({
        address: config.temporalAddress,
        ...readTemporalCredentials(config),
        connectTimeout: CONNECT_TIMEOUT_MS,
        // No retries: the first error is the finding, and a retry after `close` would end the process.
        interceptors: [],
      }),
    (connection) => connection.close(),
  )
}
