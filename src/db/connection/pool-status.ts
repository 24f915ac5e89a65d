import type { Pool } from 'pg'
import type { DataSource } from 'typeorm'

/** Connections of a pool: open, of those idle, calls that wait for one, and how many it opens at most. */
export type PoolStatus = { total: number; idle: number; waiting: number; size: number }

export function poolStatus(dataSource: DataSource): PoolStatus {
  // TypeORM has no word for it; with PostgreSQL this is the pool of `pg`.
  const { master } = dataSource.driver as unknown as { master: Pool }
  const { totalCount, idleCount, waitingCount, options } = master
  return { total: totalCount, idle: idleCount, waiting: waitingCount, size: options.max }
}
