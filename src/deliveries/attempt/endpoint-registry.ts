import { SLOW_POST_MS } from '../../domain/task-queues.ts'
import { HEALTH_TTL_MS, isHanging, type Endpoint, type EndpointHealth, type Post } from './endpoint.ts'
import { createEndpointMap } from './endpoint-map.ts'
import { createUnrecordedOutcomes, isBlocked, MIN_UNRECORDED_RETRY_MS } from './unrecorded-outcomes.ts'

/** What a POST shows of its endpoint. `retry`: the delivery is attempted again after `inMs`. */
export type PostOutcome = {
  succeeded: boolean
  durationMs: number
  isTimeout: boolean
  retry?: { deliveryId: string; inMs: number } | null
}

/** The right to make one POST. */
export type Slot = {
  begin(): void
  /** Frees the slot; null when there was no POST or it has no outcome. Further calls do nothing. */
  release(outcome: PostOutcome | null): void
}

/** No slot is free: the delivery is to be attempted again after `retryAfterMs`. */
export type Deferral = { retryAfterMs: number }

/**
 * The endpoints that this process posts to: their health, and how many POSTs each takes at once. All times are on the
 * clock `nowMs`.
 */
export type Endpoints = {
  acquire(webhookId: string, deliveryId: string): Slot | Deferral
  /** Waits for a slot where one is expected to be free within MAX_WAIT_MS. */
  acquireSoon(webhookId: string, deliveryId: string): Promise<Slot | Deferral>
  health(webhookId: string): EndpointHealth
  /** Returns how many POSTs the endpoint takes at once. */
  limit(webhookId: string): number
  /** Returns how many attempts may come at once so that none is deferred: quick ones follow each other. */
  attemptsTogether(webhookId: string): number
  hasFreeSlot(webhookId: string): boolean
  /** Counts a success of another process: it raises the limit, and the endpoint fails less. */
  succeededElsewhere(webhookId: string): void
  /** Returns the free slots that no expected retry needs. */
  freeSlots(webhookId: string): number
  /** Returns the webhooks whose endpoints are slow or hang. */
  slow(): string[]
  /** Notes that an outcome of the endpoint could not be recorded for a while: see UnrecordedOutcomes. */
  keepUnrecorded(webhookId: string, deliveryId: string, recording: Promise<unknown>): number | null
  recorded(): Promise<void>
}

/** Limit of an unknown endpoint. Slow start doubles it with each round of successes. */
const INITIAL_LIMIT = 2
const MIN_LIMIT = 1

/** Slots of an endpoint that hangs. */
const HANGING_LIMIT = 2

/** Weight of the newest POST in the moving averages of durations. */
const NEWEST_WEIGHT = 0.2

/** The same for the share of failures: smaller, so that a few failures in a row are no sign of a failing endpoint. */
const FAILURE_WEIGHT = 0.05

/** An endpoint that refuses a larger share is failing. Below, most deliveries need no workflow. */
const FAILING_SHARE = 1 / 2

/** Duration assumed for POSTs until one has ended. */
const ASSUMED_DURATION_MS = 1_000

/** Deliveries that are due together take few slots one after the other; a longer wait would waste an activity slot. */
const MAX_WAIT_MS = 250

const MIN_RETRY_MS = 500
const MAX_RETRY_MS = 5 * 60_000

/** An expected delivery that is later went to another worker, or is final. */
const EXPECTED_TTL_MS = 60_000

/** No slot is reserved for a retry that is due later. */
const MAX_EXPECTED_DELAY_MS = 10_000

/**
 * Limits the POSTs in flight of each endpoint, by additive increase and multiplicative decrease as in TCP: a success
 * adds to the limit, up to `maxLimit`; a round of time-outs halves it. A hanging endpoint has at most HANGING_LIMIT.
 * Quick failures leave the limit as it is, and slow successes raise it.
 */
export function createEndpoints(options: {
  maxLimit: number
  initialLimit?: number
  nowMs?: () => number
  /** A clock that stops while this process stalls: then no endpoint hangs. */
  runningMs?: () => number
}): Endpoints {
  const { maxLimit, nowMs = () => performance.now() } = options
  const runningMs = options.runningMs ?? nowMs
  const initialLimit = Math.min(options.initialLimit ?? INITIAL_LIMIT, maxLimit)
  const { known: endpoints, of: endpointOf } = createEndpointMap({ initialLimit, nowMs })
  const unrecorded = createUnrecordedOutcomes(nowMs)

  function limitOf(endpoint: Endpoint): number {
    if (isBlocked(endpoint)) return 0
    const limit = Math.floor(endpoint.limit)
    return isHanging(endpoint, runningMs()) ? Math.min(limit, HANGING_LIMIT) : limit
  }

  function takeSlot(endpoint: Endpoint): Slot {
    const post: Post = { beganAtMs: null, beganRunningMs: Infinity }
    endpoint.slots.add(post)
    return {
      begin() {
        // A repeated attempt whose slot was released has none.
        if (!endpoint.slots.has(post)) return
        post.beganAtMs = nowMs()
        post.beganRunningMs = runningMs()
        endpoint.posts.delete(post)
        endpoint.posts.add(post)
      },
      release(outcome) {
        if (!endpoint.slots.delete(post)) return
        endpoint.posts.delete(post)
        if (outcome !== null)
          addOutcome(endpoint, { ...outcome, durationMs: outcome.durationMs - stalledMs(post) }, post)
        for (const take of endpoint.waiting) {
          if (endpoint.slots.size >= limitOf(endpoint)) break
          take(takeSlot(endpoint))
        }
      },
    }
  }

  /** Returns for how many ms this process stalled during the POST. */
  function stalledMs({ beganAtMs, beganRunningMs }: Post): number {
    return beganAtMs === null ? 0 : nowMs() - beganAtMs - (runningMs() - beganRunningMs)
  }

  function addOutcome(endpoint: Endpoint, outcome: PostOutcome, { beganAtMs }: Post): void {
    const { succeeded, durationMs, isTimeout, retry = null } = outcome
    const now = nowMs()
    endpoint.lastAtMs = now
    endpoint.slowAtMs = durationMs > SLOW_POST_MS ? now : -Infinity
    endpoint.timedOutAtMs = isTimeout ? now : -Infinity
    endpoint.failureShare = average(endpoint.failureShare, succeeded ? 0 : 1, FAILURE_WEIGHT)
    if (succeeded) {
      endpoint.succeededRunningMs = runningMs()
      endpoint.averageSuccessMs = average(endpoint.averageSuccessMs, durationMs)
      // Earlier time-outs do not count any more.
      endpoint.averageMs = endpoint.averageSuccessMs
      grow(endpoint)
      return
    }
    endpoint.averageMs = average(endpoint.averageMs, durationMs)
    if (!isTimeout) return
    if (retry !== null && retry.inMs <= MAX_EXPECTED_DELAY_MS)
      endpoint.expected.set(retry.deliveryId, now + retry.inMs + EXPECTED_TTL_MS)
    if ((beganAtMs ?? -Infinity) < endpoint.reducedAtMs) return
    endpoint.limit = Math.max(MIN_LIMIT, endpoint.limit / 2)
    endpoint.isSlowStart = false
    endpoint.reducedAtMs = now
  }

  function grow(endpoint: Endpoint): void {
    endpoint.limit = Math.min(maxLimit, endpoint.limit + (endpoint.isSlowStart ? 1 : 1 / endpoint.limit))
  }

  function acquire(webhookId: string, deliveryId: string): Slot | Deferral {
    const endpoint = endpointOf(webhookId)
    const retryAfterMs = unrecorded.retryAfterMs(endpoint, deliveryId)
    if (retryAfterMs !== null) return { retryAfterMs }
    if (endpoint.slots.size >= limitOf(endpoint)) return defer(endpoint, deliveryId)
    endpoint.expected.delete(deliveryId)
    return takeSlot(endpoint)
  }

  /** Estimates the wait: the rounds of POSTs before this delivery, each as long as an average POST. */
  function defer(endpoint: Endpoint, deliveryId: string): Deferral {
    dropExpired(endpoint)
    const { expected, averageMs } = endpoint
    expected.delete(deliveryId)
    const isUnproven = averageMs === null && !isHanging(endpoint, runningMs())
    const rounds = Math.ceil((expected.size + 1) / (isUnproven ? maxLimit : Math.max(1, limitOf(endpoint))))
    const retryAfterMs = Math.min(
      MAX_RETRY_MS,
      Math.max(
        isBlocked(endpoint) ? MIN_UNRECORDED_RETRY_MS : MIN_RETRY_MS,
        rounds * (averageMs ?? ASSUMED_DURATION_MS),
      ),
    )
    expected.set(deliveryId, nowMs() + retryAfterMs + EXPECTED_TTL_MS)
    return { retryAfterMs }
  }

  function dropExpired({ expected }: Endpoint): void {
    for (const [deliveryId, expiresAtMs] of expected) {
      if (expiresAtMs > nowMs()) return
      expected.delete(deliveryId)
    }
  }

  function slowness(endpoint: Endpoint): 'hanging' | 'slow' | null {
    const sinceMs = nowMs() - HEALTH_TTL_MS
    if (isBlocked(endpoint) || isHanging(endpoint, runningMs()) || endpoint.timedOutAtMs >= sinceMs)
      return 'hanging'
    return endpoint.slowAtMs >= sinceMs ? 'slow' : null
  }

  function isFailing({ failureShare, lastAtMs }: Endpoint): boolean {
    return failureShare > FAILING_SHARE && lastAtMs >= nowMs() - HEALTH_TTL_MS
  }

  function attemptsTogether(endpoint: Endpoint, averageMs: number): number {
    const limit = limitOf(endpoint)
    if (isHanging(endpoint, runningMs())) return limit
    return Math.min(maxLimit, limit * (1 + Math.floor(MAX_WAIT_MS / averageMs)))
  }

  function isShortWait(endpoint: Endpoint): boolean {
    const { slots, waiting, averageMs } = endpoint
    return slots.size + waiting.size < attemptsTogether(endpoint, averageMs ?? 0)
  }

  return {
    acquire,
    async acquireSoon(webhookId, deliveryId) {
      const endpoint = endpointOf(webhookId)
      const isRecording = endpoint.unrecorded.has(deliveryId)
      if (isRecording || endpoint.slots.size < limitOf(endpoint) || !isShortWait(endpoint))
        return acquire(webhookId, deliveryId)
      const slot = await nextSlot(endpoint)
      if (slot === null) return acquire(webhookId, deliveryId)
      endpoint.expected.delete(deliveryId)
      return slot
    },
    health(webhookId) {
      const endpoint = endpoints.get(webhookId)
      if (endpoint === undefined) return 'unproven'
      const slow = slowness(endpoint)
      if (slow !== null) return slow
      if (isFailing(endpoint)) return 'failing'
      return endpoint.averageSuccessMs === null ? 'unproven' : 'healthy'
    },
    limit(webhookId) {
      const endpoint = endpoints.get(webhookId)
      return endpoint === undefined ? initialLimit : limitOf(endpoint)
    },
    attemptsTogether(webhookId) {
      const endpoint = endpoints.get(webhookId)
      return endpoint === undefined
        ? initialLimit
        : attemptsTogether(endpoint, endpoint.averageMs ?? Infinity)
    },
    hasFreeSlot(webhookId) {
      const endpoint = endpoints.get(webhookId)
      return endpoint === undefined || endpoint.slots.size < limitOf(endpoint)
    },
    succeededElsewhere(webhookId) {
      const endpoint = endpointOf(webhookId)
      endpoint.failureShare = average(endpoint.failureShare, 0, FAILURE_WEIGHT)
      grow(endpoint)
    },
    freeSlots(webhookId) {
      const endpoint = endpointOf(webhookId)
      dropExpired(endpoint)
      return Math.max(0, limitOf(endpoint) - endpoint.slots.size - endpoint.expected.size)
    },
    keepUnrecorded: (webhookId, deliveryId, recording) =>
      unrecorded.keep(endpointOf(webhookId), deliveryId, recording),
    recorded: () => unrecorded.recorded(),
    slow: () => [...endpoints].flatMap(([id, endpoint]) => (slowness(endpoint) === null ? [] : [id])),
  }
}

/** Returns the next free slot, in order of the calls; null after MAX_WAIT_MS. */
function nextSlot({ waiting }: Endpoint): Promise<Slot | null> {
  return new Promise((resolve) => {
    const end = (slot: Slot | null): void => {
      clearTimeout(timer)
      waiting.delete(end)
      resolve(slot)
    }
    const timer = setTimeout(() => end(null), MAX_WAIT_MS)
    waiting.add(end)
  })
}

function average(mean: number | null, newest: number, weight = NEWEST_WEIGHT): number {
  return mean === null ? newest : mean + weight * (newest - mean)
}
