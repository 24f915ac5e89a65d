/** Judges whether Temporal is behind with first attempts, by what waits for it and by how many deliveries come. */
export type Backpressure = {
  /** A delivery has come. */
  arrived(): void
  isTemporalBehind(): boolean
  /** So few deliveries come that there is room for the backfill. */
  isQuiet(): boolean
  /** Deliveries came in the last second. */
  isInUse(): boolean
}

/**
 * Temporal is behind when so many deliveries wait for it: at some 50 attempts a second, the pace of a small server, the
 * last of them waits for a third of a second. It stays behind until fewer than that come in a second, so that it is
 * not given the rest of a burst whenever it has a slot free.
 */
const BEHIND = 16

/** The backfill costs Temporal as much as fresh deliveries, and must not be what makes it fall behind. */
const QUIET_PER_SECOND = 50

const BUCKET_MS = 100
const BUCKETS = 10

/** `waiting`: deliveries that wait for Temporal, here or there. `isAway`: it takes none at all. */
export function createBackpressure(options: {
  waiting: () => number
  isAway: () => boolean
  nowMs?: () => number
}): Backpressure {
  const { waiting, isAway, nowMs = () => performance.now() } = options
  const counts = new Array<number>(BUCKETS).fill(0)
  let bucket = 0
  let wasBehind = false

  /** Deliveries of the last second. */
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
      if (isAway() || waiting() >= BEHIND) wasBehind = true
      else if (perSecond() < BEHIND) wasBehind = false
      return wasBehind
    },
    isInUse: () => perSecond() > 0,
    isQuiet: () => !isAway() && waiting() < BEHIND && perSecond() < QUIET_PER_SECOND,
  }
}
