import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { eventually } from '../eventually.ts'

/** Waits until a transaction of this database waits for an advisory lock: that of a webhook. */
export async function untilOneWaitsForLock(dataSource: DataSource): Promise<void> {
  await eventually(async () => {
    const [waiting] = await dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM pg_locks
        WHERE locktype = 'advisory' AND NOT granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
    expect(waiting!.count).to.equal(1)
  })
}
