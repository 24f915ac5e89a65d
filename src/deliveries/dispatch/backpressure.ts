/** Decides whether Temporal is behind with first attempts, by the deliveries that wait for it and those that arrive. */
export type Backpressure = {
  arrived(): void
  isTemporalBehind(): boolean
  /** True while so few deliveries arrive that there is room for the backfill. */
  isQuiet(): boolean
  /** True when deliveries arrived in the last second. */
  hasRecentDeliveries(): boolean
}

/**
 * Temporal is behind when this many deliveries wait for it: at 50 attempts a second, the throughput of a small server,
 * the last one waits for a third of a second. It stays behind until fewer arrive in a second, so that it does not get
 * the rest of a burst whenever it has a free slot.
 */
const MIN_BEHIND = 16

/** The backfill costs Temporal as much as new deliveries, so it pauses at this rate. */
const MAX_QUIET_PER_SECOND = 50

const BUCKET_MS = 100
const BUCKETS = 10

/** `waiting`: deliveries that wait for Temporal, in this process or in Temporal. */
export function createBackpressure(options: {
  waiting: () => number
  isTemporalUnavailable: () => boolean
  nowMs?: () => number
}): Backpressure {
  const { waiting, isTemporalUnavailable, nowMs = () => performance.now() } = options
  const counts = new Array<number>(BUCKETS).fill(0)
  let bucket = 0
  let wasBehind = false

  /** Returns the deliveries of the last second. */
  function perSecond(): number {
    const now = Math.floor(nowMs() / BUCKET_MS)
    for (let passed = Math.min(now - bucket, BUCKETS); passed > 0; passed--)
      counts[(now - passed + 1) % BUCKETS] = 0
    bucket = now
    return counts.reduce((sum, count) => sum + count, 0)
  }

  return {
    arrived() {
      perSecond()
      counts[bucket % BUCKETS] = (counts[bucket % BUCKETS] ?? 0) + 1
    },
    isTemporalBehind() {
      if (isTemporalUnavailable() || waiting() >= MIN_BEHIND) wasBehind = true
      else if (perSecond() < MIN_BEHIND) wasBehind = false
      return wasBehind
    },
    hasRecentDeliveries: () => perSecond() > 0,
    isQuiet: () => !isTemporalUnavailable() && waiting() < MIN_BEHIND && perSecond() < MAX_QUIET_PER_SECOND,
  }
}
