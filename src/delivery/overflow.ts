/** Judges whether the engine is behind with first attempts, by what waits for it and by how much comes. */
export type Overflow = {
  /** A delivery has come. */
  arrived(): void
  isBehind(): boolean
  /** So little comes that there is room for what can wait. */
  isQuiet(): boolean
}

/**
 * The engine is behind when so many deliveries wait for it: at some 50 attempts a second, the pace of a small engine,
 * the last of them has to wait for a third of a second. It stays so until less than that comes in a second: an engine
 * that is given a burst's rest each time it has a place free would have no moment to breathe, nor would we.
 */
const BEHIND = 16

/** What can wait costs the engine as much as fresh work, and must not be what makes it fall behind. */
const QUIET_PER_SECOND = 50

const BUCKET_MS = 100
const BUCKETS = 10

/** `waiting`: deliveries that wait for the engine, here or with it. `isAway`: it takes nothing at all. */
export function createOverflow(engine: { waiting: () => number; isAway: () => boolean }): Overflow {
  const counts = new Array<number>(BUCKETS).fill(0)
  let bucket = 0
  let wasBehind = false

  /** Deliveries of the last second. */
  function perSecond(): number {
    const now = Math.floor(performance.now() / BUCKET_MS)
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
    isBehind() {
      if (engine.isAway() || engine.waiting() >= BEHIND) wasBehind = true
      else if (perSecond() < BEHIND) wasBehind = false
      return wasBehind
    },
    isQuiet: () => !engine.isAway() && engine.waiting() < BEHIND && perSecond() < QUIET_PER_SECOND,
  }
}
