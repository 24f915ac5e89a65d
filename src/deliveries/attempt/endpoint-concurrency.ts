import { LRUCache } from 'lru-cache'
import { SLOW_POST_MS } from '../../domain/attempt-outcome.ts'
import { processTimers, type Timers } from '../../timers.ts'
import {
  average,
  isHanging,
  newEndpoint,
  nextSlot,
  type Endpoint,
  type EndpointHealth,
  type Post,
  type PostOutcome,
  type Slot,
} from './endpoint.ts'
import { createUnrecordedOutcomes, isBlocked, MIN_UNRECORDED_RETRY_MS } from './unrecorded-outcomes.ts'

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
  /** True for an endpoint that hangs, or timed out last: slow, and not only since it takes its time to answer. */
  isStuck(webhookId: string): boolean
  /** True once a POST has ended otherwise than by a time-out. */
  hasAnswered(webhookId: string): boolean
  /** Returns how many POSTs the endpoint takes at once. */
  limit(webhookId: string): number
  /** Returns how many further POSTs can begin within so many ms: quick ones follow each other. */
  room(webhookId: string, withinMs: number): number
  hasFreeSlot(webhookId: string): boolean
  /** Returns the free slots that no expected retry needs. */
  freeSlots(webhookId: string): number
  /** Counts a success of another process: it raises the limit. */
  succeededElsewhere(webhookId: string): void
  /** Counts a fault of ours in an attempt: the endpoint is slow for a while, so that Temporal spaces the attempts out. */
  noteFault(webhookId: string): void
  /** Returns the webhooks whose endpoints are slow, and those with a slot in use. */
  slow(): string[]
  inUse(): string[]
  /** Notes that an outcome of the endpoint could not be recorded for a while: see UnrecordedOutcomes. */
  keepUnrecorded(webhookId: string, deliveryId: string, recording: Promise<unknown>): number | null
  recorded(): Promise<void>
}

/** Idle endpoints that are known; the one that was used longest ago is forgotten first. */
const MAX_ENDPOINTS = 10_000

/** An endpoint is slow for so long after a slow POST. */
const HEALTH_TTL_MS = 60_000

/** Limit of an endpoint until it answers, and at least from then on. Slow start doubles it with each round of successes. */
const INITIAL_LIMIT = 1
const ANSWERED_LIMIT = 4
const MIN_LIMIT = 1

/** Slots of an endpoint that hangs. */
const HANGING_LIMIT = 2

/** Duration assumed for POSTs until one has ended. */
const ASSUMED_DURATION_MS = 1_000

/** Deliveries that are due together take few slots one after the other; a longer wait would waste an activity slot. */
const MAX_WAIT_MS = 250

const MIN_RETRY_MS = 500

/**
 * Deferred deliveries come back within this time: their endpoint may have recovered. Where more than 200 wait, later: five
 * in a second. From five minutes on they come back in that time, but no more than 50 in a second.
 */
const SOON_RETRY_MS = 40_000
const LATE_RETRY_MS = 5 * 60_000
const MS_PER_DEFERRED = { soon: 200, late: 20 }

/** An expected delivery that is later went to another worker, or is final. */
const EXPECTED_TTL_MS = 20_000

/** No slot is reserved for a retry that is due later. */
const MAX_EXPECTED_DELAY_MS = 10_000

/**
 * Limits the POSTs in flight of each endpoint, by additive increase and multiplicative decrease as in TCP: a success
 * adds to the limit, up to `maxLimit`; a round of time-outs halves it. A hanging endpoint has at most HANGING_LIMIT.
 * Quick failures leave the limit as it is, and slow successes raise it. Until it answers, an endpoint has one slot.
 */
export function createEndpoints(options: {
  maxLimit: number
  initialLimit?: number
  timers?: Timers
  /** A clock that stops while this process stalls: then no endpoint hangs. */
  runningMs?: () => number
}): Endpoints {
  const { maxLimit, timers = processTimers } = options
  const { nowMs } = timers
  const runningMs = options.runningMs ?? nowMs
  const initialLimit = Math.min(options.initialLimit ?? INITIAL_LIMIT, maxLimit)
  const answeredLimit = Math.min(ANSWERED_LIMIT, maxLimit)
  const endpoints = new LRUCache<string, Endpoint>({
    max: MAX_ENDPOINTS,
    memoMethod: () => newEndpoint(initialLimit),
  })
  // Those with a slot in use: they are not forgotten.
  const inUse = new Map<string, Endpoint>()
  const endpointOf = (webhookId: string): Endpoint => inUse.get(webhookId) ?? endpoints.memo(webhookId)
  const unrecorded = createUnrecordedOutcomes(nowMs)

  function limitOf(endpoint: Endpoint): number {
    if (isBlocked(endpoint)) return 0
    const limit = Math.floor(endpoint.limit)
    return isHanging(endpoint, runningMs()) ? Math.min(limit, HANGING_LIMIT) : limit
  }

  function takeSlot(webhookId: string, endpoint: Endpoint): Slot {
    const post: Post = { beganRunningMs: Infinity }
    endpoint.slots.add(post)
    inUse.set(webhookId, endpoint)
    return {
      begin() {
        // A repeated attempt whose slot was released has none.
        if (!endpoint.slots.has(post)) return
        post.beganRunningMs = runningMs()
        endpoint.posts.delete(post)
        endpoint.posts.add(post)
      },
      release(outcome) {
        if (!endpoint.slots.delete(post)) return
        endpoint.posts.delete(post)
        if (outcome !== null) addOutcome(endpoint, outcome, post)
        for (const take of endpoint.waiting) {
          if (endpoint.slots.size >= limitOf(endpoint)) break
          take(takeSlot(webhookId, endpoint))
        }
        if (endpoint.slots.size > 0) return
        inUse.delete(webhookId)
        endpoints.set(webhookId, endpoint)
      },
    }
  }

  function addOutcome(endpoint: Endpoint, outcome: PostOutcome, { beganRunningMs }: Post): void {
    const { succeeded, isTimeout, retry = null } = outcome
    const [now, nowRunning] = [nowMs(), runningMs()]
    const durationMs = nowRunning - beganRunningMs
    endpoint.slowAtMs = isTimeout || durationMs > SLOW_POST_MS ? now : -Infinity
    endpoint.hasTimedOut = isTimeout
    if (succeeded) {
      grow(endpoint)
      endpoint.succeededRunningMs = nowRunning
      endpoint.averageSuccessMs = average(endpoint.averageSuccessMs, durationMs)
    }
    if (!isTimeout && !endpoint.hasAnswered) endpoint.limit = Math.max(endpoint.limit, answeredLimit)
    endpoint.hasAnswered ||= !isTimeout
    // After a success, earlier time-outs do not count any more.
    endpoint.averageMs = succeeded ? endpoint.averageSuccessMs : average(endpoint.averageMs, durationMs)
    if (!isTimeout) return
    if (retry !== null && retry.inMs <= MAX_EXPECTED_DELAY_MS)
      addExpected(endpoint, retry.deliveryId, retry.inMs)
    if (beganRunningMs < endpoint.reducedRunningMs) return
    endpoint.limit = Math.max(MIN_LIMIT, endpoint.limit / 2)
    endpoint.isSlowStart = false
    endpoint.reducedRunningMs = nowRunning
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
    return takeSlot(webhookId, endpoint)
  }

  /** Estimates the wait: the rounds of POSTs before this delivery, each as long as an average POST. */
  function defer(endpoint: Endpoint, deliveryId: string): Deferral {
    dropExpired(endpoint)
    const { expected, averageMs } = endpoint
    expected.delete(deliveryId)
    const isUnknown = averageMs === null && !isHanging(endpoint, runningMs())
    const rounds = Math.ceil((expected.size + 1) / (isUnknown ? maxLimit : Math.max(1, limitOf(endpoint))))
    const minMs = isBlocked(endpoint) ? MIN_UNRECORDED_RETRY_MS : MIN_RETRY_MS
    const maxMs = Math.max(
      SOON_RETRY_MS,
      Math.min(LATE_RETRY_MS, expected.size * MS_PER_DEFERRED.soon),
      expected.size * MS_PER_DEFERRED.late,
    )
    const retryAfterMs = Math.min(maxMs, Math.max(minMs, rounds * (averageMs ?? ASSUMED_DURATION_MS)))
    addExpected(endpoint, deliveryId, retryAfterMs)
    return { retryAfterMs }
  }

  function addExpected(endpoint: Endpoint, deliveryId: string, inMs: number): void {
    const expiresAtMs = nowMs() + inMs + EXPECTED_TTL_MS
    endpoint.expected.set(deliveryId, expiresAtMs)
    endpoint.earliestExpiryMs = Math.min(endpoint.earliestExpiryMs, expiresAtMs)
  }

  /** Reads all of them only where one has expired: there may be many thousands, in no order. */
  function dropExpired(endpoint: Endpoint): void {
    if (nowMs() < endpoint.earliestExpiryMs) return
    endpoint.earliestExpiryMs = Infinity
    for (const [deliveryId, expiresAtMs] of endpoint.expected)
      if (expiresAtMs <= nowMs()) endpoint.expected.delete(deliveryId)
      else endpoint.earliestExpiryMs = Math.min(endpoint.earliestExpiryMs, expiresAtMs)
  }

  function isSlow(endpoint: Endpoint): boolean {
    const isSlowNow = isBlocked(endpoint) || isHanging(endpoint, runningMs())
    return isSlowNow || endpoint.slowAtMs >= nowMs() - HEALTH_TTL_MS
  }

  function room(endpoint: Endpoint, withinMs: number, averageMs = endpoint.averageMs ?? Infinity): number {
    const rounds = isHanging(endpoint, runningMs()) ? 1 : 1 + Math.floor(withinMs / averageMs)
    return Math.max(0, limitOf(endpoint) * rounds - endpoint.slots.size - endpoint.waiting.size)
  }

  return {
    acquire,
    async acquireSoon(webhookId, deliveryId) {
      const endpoint = endpointOf(webhookId)
      // A slot may also come soon where no POST has shown how long they take.
      const canWait = room(endpoint, MAX_WAIT_MS, endpoint.averageMs ?? 0) > 0
      const isRecording = endpoint.unrecorded.has(deliveryId)
      if (isRecording || endpoint.slots.size < limitOf(endpoint) || !canWait)
        return acquire(webhookId, deliveryId)
      const slot = await nextSlot(endpoint, MAX_WAIT_MS, timers)
      if (slot === null) return acquire(webhookId, deliveryId)
      endpoint.expected.delete(deliveryId)
      return slot
    },
    health: (webhookId) => (isSlow(endpointOf(webhookId)) ? 'slow' : 'fast'),
    isStuck(webhookId) {
      const endpoint = endpointOf(webhookId)
      const { hasTimedOut } = endpoint
      return isSlow(endpoint) && (hasTimedOut || isBlocked(endpoint) || isHanging(endpoint, runningMs()))
    },
    hasAnswered: (webhookId) => endpointOf(webhookId).hasAnswered,
    limit: (webhookId) => limitOf(endpointOf(webhookId)),
    room: (webhookId, withinMs) => room(endpointOf(webhookId), withinMs),
    hasFreeSlot(webhookId) {
      const endpoint = endpointOf(webhookId)
      return endpoint.slots.size < limitOf(endpoint)
    },
    succeededElsewhere(webhookId) {
      const endpoint = endpointOf(webhookId)
      endpoint.hasAnswered = true
      grow(endpoint)
    },
    noteFault(webhookId) {
      endpointOf(webhookId).slowAtMs = nowMs()
    },
    freeSlots(webhookId) {
      const endpoint = endpointOf(webhookId)
      dropExpired(endpoint)
      return Math.max(0, limitOf(endpoint) - endpoint.slots.size - endpoint.expected.size)
    },
    keepUnrecorded: (webhookId, deliveryId, recording) =>
      unrecorded.keep(endpointOf(webhookId), deliveryId, recording),
    recorded: () => unrecorded.recorded(),
    slow() {
      const ids = [...inUse].flatMap(([id, one]) => (isSlow(one) ? [id] : []))
      endpoints.forEach((one, id) => {
        if (!inUse.has(id) && isSlow(one)) ids.push(id)
      })
      return ids
    },
    inUse: () => [...inUse.keys()],
  }
}
