import type { Timers } from '../../timers.ts'

/**
 * The health of an endpoint, the receiving side of a webhook, as far as this process has seen. `slow`: it hangs, it timed
 * out or took longer than a second in the last minute, or its outcomes cannot be recorded. All others are `fast`,
 * whatever they answer.
 */
export type EndpointHealth = 'fast' | 'slow'

/** What a POST shows of its endpoint. `retry`: the delivery is attempted again after `inMs`. */
export type PostOutcome = {
  succeeded: boolean
  isTimeout: boolean
  retry?: { deliveryId: string; inMs: number } | null
}

/** The right to make one POST. */
export type Slot = {
  begin(): void
  /** Frees the slot; null when there was no POST or it has no outcome. Further calls do nothing. */
  release(outcome: PostOutcome | null): void
}

/** When the POST began, on the running clock; Infinity: not yet. */
export type Post = { beganRunningMs: number }

/** The state of one endpoint in one process. */
export type Endpoint = ReturnType<typeof newEndpoint>

export function newEndpoint(limit: number) {
  return {
    limit,
    /** Until the first reduction each success adds a whole slot. */
    isSlowStart: true,
    /** On the running clock. */
    reducedRunningMs: -Infinity,
    slots: new Set<Post>(),
    /** POSTs in flight, the oldest first. */
    posts: new Set<Post>(),
    /** Attempts that wait for a slot, in order. */
    waiting: new Set<(slot: Slot) => void>(),
    /** Deferred deliveries and retries of time-outs that are due soon, each with the time when it is dropped. */
    expected: new Map<string, number>(),
    /** No later than the earliest of these times. */
    earliestExpiryMs: Infinity,
    /** Deliveries whose outcome this process could not record for a while, with the time since when. */
    unrecorded: new Map<string, number>(),
    hasAnswered: false,
    /** Moving averages of the durations of all POSTs, and of successful ones; null before the first. */
    averageMs: null as number | null,
    averageSuccessMs: null as number | null,
    succeededRunningMs: -Infinity,
    /** When it was slow, or timed out, last; -Infinity once it was fast again. */
    slowAtMs: -Infinity,
    /** The POST that ended last timed out. */
    hasTimedOut: false,
  }
}

/** An endpoint hangs when its oldest POST takes longer than both, and no other has succeeded meanwhile. */
const HANGING_TIMEOUT_MS = 1_000
const HANGING_FACTOR = 3

export function isHanging(
  { posts, averageSuccessMs, succeededRunningMs }: Endpoint,
  nowRunningMs: number,
): boolean {
  const [oldest] = posts
  if (oldest === undefined) return false
  return (
    nowRunningMs - Math.max(oldest.beganRunningMs, succeededRunningMs) >
    Math.max(HANGING_TIMEOUT_MS, HANGING_FACTOR * (averageSuccessMs ?? 0))
  )
}

/** Weight of the newest POST in the moving averages of durations. */
const NEWEST_WEIGHT = 0.2

/** Returns the moving average with a further duration. */
export function average(mean: number | null, newest: number): number {
  return mean === null ? newest : mean + NEWEST_WEIGHT * (newest - mean)
}

/** Returns the next free slot, in order of the calls; null after `waitMs`. */
export function nextSlot(
  { waiting }: Endpoint,
  waitMs: number,
  timers: Pick<Timers, 'after'>,
): Promise<Slot | null> {
  return new Promise((resolve) => {
    const end = (slot: Slot | null): void => {
      cancel()
      waiting.delete(end)
      resolve(slot)
    }
    const cancel = timers.after(waitMs, () => end(null))
    waiting.add(end)
  })
}
