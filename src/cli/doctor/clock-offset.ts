import type { DataSource } from 'typeorm'
import { readDatabaseMs } from '../../db/connection/database-clock.ts'

/** Round trips: the shortest gives the best estimate. */
const ROUND_TRIPS = 3

/** How far this machine's clock is ahead of the database's, in ms, and by how much that may be wrong. */
export type ClockOffset = { offsetMs: number; uncertaintyMs: number }

export async function readClockOffset(dataSource: DataSource): Promise<ClockOffset> {
  const trips: ClockOffset[] = []
  for (let count = 0; count < ROUND_TRIPS; count++) {
    const sentMs = Date.now()
    const databaseMs = await readDatabaseMs(dataSource)
    const receivedMs = Date.now()
    trips.push({
      offsetMs: (sentMs + receivedMs) / 2 - databaseMs,
      uncertaintyMs: (receivedMs - sentMs) / 2,
    })
  }
  return trips.reduce((best, trip) => (trip.uncertaintyMs < best.uncertaintyMs ? trip : best))
}
