import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'

/** Backends hand in their counts within ten seconds of a transaction. */
const COUNTS_HANDED_IN_MS = 11_000

/** Row versions that were written to the table of deliveries so far, after everybody has handed in their counts. */
export async function deliveryUpdates(dataSource: DataSource): Promise<number> {
  await delay(COUNTS_HANDED_IN_MS)
  const [found] = await dataSource.query<[{ updates: number }]>(
    `SELECT n_tup_upd::float8 AS updates FROM pg_stat_user_tables WHERE relname = 'delivery'`,
  )
  return found.updates
}
