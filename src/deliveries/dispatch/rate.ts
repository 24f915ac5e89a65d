/** Counts what happens in a second. */
export type Rate = {
  count(): void
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
    count() {
      advance()
      counts[bucket % BUCKETS] = (counts[bucket % BUCKETS] ?? 0) + 1
    },
    perSecond() {
      advance()
      return counts.reduce((sum, count) => sum + count, 0)
    },
  }
}
