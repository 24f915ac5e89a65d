import { Connection } from '@temporalio/client'
import type { Config } from '../../config/load.ts'
import { readTemporalCredentials } from '../../process/temporal-credentials.ts'
import type { CREDENTIAL_SETTINGS } from './read-settings.ts'
import { CHECK_TIMEOUT_MS } from './run-checks.ts'

type Settings = Pick<Config, 'temporalAddress' | (typeof CREDENTIAL_SETTINGS)[number]>

/** The connection of all checks to Temporal. */
export type TemporalAccess = {
  /** Opens it with the first call. Rejects where Temporal cannot be reached. */
  open(config: Settings): Promise<Connection>
  /** Never rejects. */
  close(): Promise<void>
}

/** Ends before the check does, so that the reason is shown. */
const CONNECT_TIMEOUT_MS = CHECK_TIMEOUT_MS - 500

export function createTemporalAccess(): TemporalAccess {
  let opening: Promise<Connection> | null = null
  return {
    open(config) {
      opening ??= Promise.resolve().then(() =>
        Connection.connect({
          address: config.temporalAddress,
          ...readTemporalCredentials(config),
          connectTimeout: CONNECT_TIMEOUT_MS,
          // No retries: the first error is the finding, and a retry after `close` would end the process.
          interceptors: [],
        }),
      )
      return opening
    },
    async close() {
      try {
        if (opening !== null) await (await opening).close()
      } catch {
        // It was never open.
      }
    },
  }
}
