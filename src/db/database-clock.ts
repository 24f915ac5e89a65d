import type { DataSource } from 'typeorm'
import type { Logger } from '../logger.ts'
import { firstRow } from './db.ts'

/**
 * The clock of the database, as this process knows it: a monotonic clock and the measured offset between the two. A step
 * of this machine's own clock does not move it.
 */
export type DatabaseClock = {
  /** Unix ms, with a fraction. */
  nowMs(): number
}

export type RunningDatabaseClock = DatabaseClock & {
  /** Measures now, and again every few seconds until `stop`. Never rejects. */
  start(): Promise<void>
  stop: () => void
}

/** Two quartz clocks drift apart by less than half a millisecond in that time. */
const MEASURE_EVERY_MS = 5_000

/** Round trips of one measurement: the shortest tells most. */
const ROUND_TRIPS = 3

/** Above that difference between this machine's clock and the database's the log says so. */
const NOTABLE_DIFFERENCE_MS = 1_000

/**
 * Until the first measurement it follows this machine's clock. `monotonicMs` never goes back.
 */
export function createDatabaseClock(dependencies: {
  readDatabaseMs: () => Promise<number>
  logger: Logger
  monotonicMs?: () => number
}): RunningDatabaseClock {
  const { readDatabaseMs, logger, monotonicMs = () => performance.now() } = dependencies
  let offsetMs = Date.now() - monotonicMs()
  let saidDifferenceMs = 0
  let timer: NodeJS.Timeout | null = null
  let isMeasured = false
  let isStopped = false

  /** The database answered between the two instants, so the offset lies between two bounds: it is moved no further. */
  async function roundTrip(): Promise<{ lowest: number; highest: number }> {
    const sentMs = monotonicMs()
    const databaseMs = await readDatabaseMs()
    return { lowest: databaseMs - monotonicMs(), highest: databaseMs - sentMs }
  }

  async function measure(): Promise<void> {
    const trips = []
    for (let count = 0; count < ROUND_TRIPS; count++) trips.push(await roundTrip())
    if (!isMeasured) {
      const [best] = trips.sort((one, other) => width(one) - width(other))
      if (best !== undefined) offsetMs = (best.lowest + best.highest) / 2
      isMeasured = true
    }
    for (const { lowest, highest } of trips) offsetMs = Math.min(Math.max(offsetMs, lowest), highest)
    sayDifference()
  }

  function sayDifference(): void {
    const differenceMs = Math.round(Date.now() - monotonicMs() - offsetMs)
    if (Math.abs(differenceMs - saidDifferenceMs) < NOTABLE_DIFFERENCE_MS) return
    saidDifferenceMs = differenceMs
    logger.warn({ event: 'clock.differs', aheadOfDatabaseMs: differenceMs }, 'clock.differs')
  }

  async function measureAndGoOn(): Promise<void> {
    // While the database is away the offset stays as it was; whoever asks the database says so.
    await measure().catch(() => undefined)
    if (!isStopped) timer = setTimeout(() => void measureAndGoOn(), MEASURE_EVERY_MS).unref()
  }

  return {
    nowMs: () => monotonicMs() + offsetMs,
    start: measureAndGoOn,
    stop() {
      isStopped = true
      if (timer !== null) clearTimeout(timer)
    },
  }
}

function width({ lowest, highest }: { lowest: number; highest: number }): number {
  return highest - lowest
}

/** Unix ms of the database's clock at this moment. */
export async function readDatabaseMs(dataSource: DataSource): Promise<number> {
  const found = await firstRow<{ ms: number }>(
    dataSource,
    `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`,
  )
  return found?.ms ?? Number.NaN
}
