// Hand-written: the probe reads no table, only a setting of its own transaction.
import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'

const PROBE_TIMEOUT_MS = 2_000

/**
 * Returns whether the database answers through the pool within PROBE_TIMEOUT_MS and takes writes: a standby and a
 * database set to read-only do not. Never rejects.
 */
export function isDatabaseUp(dataSource: DataSource): Promise<boolean> {
  const answered = dataSource
    .query<{ readOnly: string }[]>(`SELECT current_setting('transaction_read_only') AS "readOnly"`)
    .then(
      ([row]) => row?.readOnly === 'off',
      () => false,
    )
  return Promise.race([answered, delay(PROBE_TIMEOUT_MS, false, { ref: false })])
}
