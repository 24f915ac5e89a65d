import type { DataSource } from 'typeorm'
import type { Logger } from '../../observability/logger.ts'
import { sql } from './db.ts'
import { setTimeout as delay } from 'node:timers/promises'

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

/** Two quartz clocks drift by less than half a millisecond in this time. */
const MEASURE_EVERY_MS = 5_000

/** Of one measurement. */
const ROUND_TRIPS = 3

/** A larger difference between this machine's clock and the database's is logged. */
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

  async function measure(): Promise<void> {
    const [best, ...others] = await measureOffset(readDatabaseMs, monotonicMs)
    if (!isMeasured) offsetMs = (best.lowest + best.highest) / 2
    isMeasured = true
    // It is moved no further than to these bounds.
    for (const { lowest, highest } of [best, ...others])
      offsetMs = Math.min(Math.max(offsetMs, lowest), highest)
    sayDifference()
  }

  function sayDifference(): void {
    const differenceMs = Math.round(Date.now() - monotonicMs() - offsetMs)
    if (Math.abs(differenceMs - saidDifferenceMs) < NOTABLE_DIFFERENCE_MS) return
    saidDifferenceMs = differenceMs
    logger.warn({ event: 'clock.skew_detected', aheadOfDatabaseMs: differenceMs })
  }

  async function measureAndGoOn(): Promise<void> {
    // While the database is away the offset stays as it was; other callers of the database report it.
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

/** By how many ms the database's clock is ahead of another: it answered between two instants, so between two bounds. */
type OffsetBounds = { lowest: number; highest: number }

/** Measures it in several round trips; the shortest, whose bounds are the closest, comes first. */
export async function measureOffset(
  readDatabaseMs: () => Promise<number>,
  nowMs: () => number,
): Promise<[OffsetBounds, ...OffsetBounds[]]> {
  const roundTrip = async (): Promise<OffsetBounds> => {
    const sentMs = nowMs()
    const databaseMs = await readDatabaseMs()
    return { lowest: databaseMs - nowMs(), highest: databaseMs - sentMs }
  }
  const trips: [OffsetBounds, ...OffsetBounds[]] = [await roundTrip()]
  while (trips.length < ROUND_TRIPS) trips.push(await roundTrip())
  return trips.sort((one, other) => one.highest - one.lowest - (other.highest - other.lowest))
}

/** Unix ms of the database's clock at this moment. */
export async function readDatabaseMs(dataSource: DataSource): Promise<number> {
  const now = sql(`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`)
  return (await now.one<{ ms: number }>(dataSource)).ms
}

/**
 * Waits until `dueAtMs` of the database's clock, as far as this process knows it, for `maxWaitMs` at most. Timers may
 * fire a fraction early, so the clock is read again. Rejects when `signal` aborts.
 */
export async function waitUntilDue(
  clock: DatabaseClock,
  { dueAtMs, maxWaitMs }: { dueAtMs: number; maxWaitMs: number },
  signal: AbortSignal,
): Promise<void> {
  const endsAtMs = performance.now() + maxWaitMs
  const remainingMs = (): number => Math.min(dueAtMs - clock.nowMs(), endsAtMs - performance.now())
  for (let leftMs = remainingMs(); leftMs > 0; leftMs = remainingMs()) {
    await delay(Math.ceil(leftMs), undefined, { signal })
  }
}
