const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** The times that activity is shown for, each in buckets of one length. */
export const ACTIVITY_RANGES = {
  '1h': { buckets: 12, bucketMs: 5 * MINUTE_MS },
  '24h': { buckets: 24, bucketMs: HOUR_MS },
  '7d': { buckets: 28, bucketMs: 6 * HOUR_MS },
} as const

export type ActivityRange = keyof typeof ACTIVITY_RANGES
