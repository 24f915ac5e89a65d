/** Decides whether Temporal is behind with first attempts, by the deliveries that wait for it and those that arrive. */
export type Backpressure = {
  /** Counts deliveries of fast endpoints that this process has taken up. */
  arrived(count: number): void
  isTemporalBehind(): boolean
  /** True while so few deliveries arrive that there is room for workflows that follow. */
  isQuiet(): boolean
  /** True when deliveries arrived in the last second. */
  hasRecentDeliveries(): boolean
}

/**
 * Temporal is behind when this many deliveries wait for it: at 50 attempts a second, the throughput of a small server,
 * the last one waits for a third of a second. It stays behind until fewer arrive in a second, so that it does not get
 * the rest of a burst whenever it has a free slot.
 */
export const MIN_BEHIND = 16

/** Workflows that follow cost Temporal as much as new deliveries: above this rate they start at their lowest pace. */
const MAX_QUIET_PER_SECOND = 50

/** `waiting`: deliveries that wait for Temporal, in this process or in Temporal. */
export function createBackpressure(options: {
  waiting: () => number
  isTemporalUnavailable: () => boolean
  nowMs: () => number
}): Backpressure {
  const { waiting, isTemporalUnavailable } = options
  const arrivals = createRate(options.nowMs)
  let wasBehind = false
  return {
    arrived: (count) => arrivals.count(count),
    isTemporalBehind() {
      if (isTemporalUnavailable() || waiting() >= MIN_BEHIND) wasBehind = true
      else if (arrivals.perSecond() < MIN_BEHIND) wasBehind = false
      return wasBehind
    },
    hasRecentDeliveries: () => arrivals.perSecond() > 0,
    isQuiet: () =>
      !isTemporalUnavailable() && waiting() < MIN_BEHIND && arrivals.perSecond() < MAX_QUIET_PER_SECOND,
  }
}

/** Counts what happens in a second. */
export type Rate = {
  count(happened: number): void
  perSecond(): number
}

const BUCKET_MS = 100
const BUCKETS = 10

export function createRate(nowMs: () => number): Rate {
  const counts = new Array<number>(BUCKETS).fill(0)
  let bucket = 0

  /** Empties the buckets of the time since the last call. */
  function advance(): void {
    const now = Math.floor(nowMs() / BUCKET_MS)
    for (let passed = Math.min(now - bucket, BUCKETS); passed > 0; passed--)
      counts[(now - passed + 1) % BUCKETS] = 0
    bucket = now
  }

  return {
    count(happened) {
      advance()
      counts[bucket % BUCKETS] = (counts[bucket % BUCKETS] ?? 0) + happened
    },
    perSecond() {
      advance()
      return counts.reduce((sum, count) => sum + count, 0)
    },
  }
}
