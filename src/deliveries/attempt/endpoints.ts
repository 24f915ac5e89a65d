import { isHanging, newEndpoint, type Endpoint, type EndpointHealth, type Post } from './endpoint.ts'

/** The outcome of a POST, as far as it says something of its endpoint. `retry`: its delivery comes back after `inMs`. */
export type PostOutcome = {
  succeeded: boolean
  durationMs: number
  isTimeout: boolean
  retry?: { deliveryId: string; inMs: number } | null
}

/** The right to make one POST. */
export type Slot = {
  /** The POST begins now. */
  begin(): void
  /** Frees the slot; null when there was no POST or it has no outcome. Further calls do nothing. */
  release(outcome: PostOutcome | null): void
}

/** No slot is free: the delivery is to be tried again after `retryAfterMs`. */
export type Deferral = { retryAfterMs: number }

/**
 * The endpoints that this process posts to: how they do, and how many POSTs each takes at once. All times are those of
 * `nowMs`.
 */
export type Endpoints = {
  acquire(webhookId: string, deliveryId: string): Slot | Deferral
  /** The same, but waits for a slot where one will be free within MAX_WAIT_MS. */
  acquireSoon(webhookId: string, deliveryId: string): Promise<Slot | Deferral>
  /** `readAtMs`: when the database knew of no open incident; a failure before that is settled. */
  health(webhookId: string, readAtMs: number): EndpointHealth
  /** POSTs that it takes at once. */
  limit(webhookId: string): number
  hasFreeSlot(webhookId: string): boolean
  /** Another process made a POST that succeeded: the limit grows as if this one had. */
  succeededElsewhere(webhookId: string): void
  /** Free slots that no delivery is expected to come back for soon. */
  freeSlots(webhookId: string): number
  /** Endpoints that are slow now, or hang. */
  slow(): string[]
}

/** Of an endpoint of which nothing is known. Slow start doubles it with each round of successes. */
const INITIAL_LIMIT = 2
const MIN_LIMIT = 1

/** Slots of an endpoint that hangs. */
const HANGING_LIMIT = 2

/** An endpoint that takes longer to answer is slow, until it is quick again or nothing was seen of it for so long. */
const SLOW_MS = 1_000
const SLOW_TTL_MS = 60_000

/** Weight of the newest POST in what is typical. */
const NEWEST_SHARE = 0.2

/** What a POST is taken to last until one has ended. */
const ASSUMED_MS = 1_000

/** Deliveries due at one instant follow each other into few slots; a longer wait would waste an activity slot. */
const MAX_WAIT_MS = 250

const MIN_RETRY_MS = 500
const MAX_RETRY_MS = 5 * 60_000

/** A delivery that is expected, and so late, went to another worker or is final. */
const EXPECTED_TTL_MS = 60_000

/** Slots are not kept free for a retry that comes later. */
const MAX_EXPECTED_MS = 10_000

/** Endpoints of which nothing was seen lately are forgotten when there are more than this. */
const MAX_ENDPOINTS = 10_000

/**
 * Limits the POSTs in flight of each endpoint, additive increase and multiplicative decrease as in TCP: a success adds
 * to the limit, up to `maxLimit`; a round of time-outs halves it. An endpoint that hangs keeps at most HANGING_LIMIT.
 * Quick failures and slow successes leave the limit as it is, or let it grow: they do not occupy slots in vain.
 */
export function createEndpoints(options: {
  maxLimit: number
  initialLimit?: number
  nowMs?: () => number
  /** Milliseconds during which this process runs: while it stalls, no endpoint hangs. */
  runningMs?: () => number
}): Endpoints {
  const { maxLimit, nowMs = () => performance.now() } = options
  const runningMs = options.runningMs ?? nowMs
  const initialLimit = Math.min(options.initialLimit ?? INITIAL_LIMIT, maxLimit)
  const endpoints = new Map<string, Endpoint>()

  function endpointOf(webhookId: string): Endpoint {
    const known = endpoints.get(webhookId)
    if (known !== undefined) return known
    if (endpoints.size >= MAX_ENDPOINTS) forgetIdle(endpoints, nowMs())
    const endpoint = newEndpoint(initialLimit)
    endpoints.set(webhookId, endpoint)
    return endpoint
  }

  function limitOf(endpoint: Endpoint): number {
    const limit = Math.floor(endpoint.limit)
    return isHanging(endpoint, runningMs()) ? Math.min(limit, HANGING_LIMIT) : limit
  }

  function takeSlot(endpoint: Endpoint): Slot {
    const post: Post = { beganAtMs: null, beganRunningMs: Infinity }
    endpoint.slots.add(post)
    return {
      begin() {
        // An attempt that is made again after its slot was freed holds none.
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
          note(endpoint, { ...outcome, durationMs: outcome.durationMs - stalledMs(post) }, post)
        for (const take of endpoint.waiting) {
          if (endpoint.slots.size >= limitOf(endpoint)) break
          take(takeSlot(endpoint))
        }
      },
    }
  }

  /** How long this process stalled during the POST. */
  function stalledMs({ beganAtMs, beganRunningMs }: Post): number {
    return beganAtMs === null ? 0 : nowMs() - beganAtMs - (runningMs() - beganRunningMs)
  }

  function note(endpoint: Endpoint, outcome: PostOutcome, { beganAtMs }: Post): void {
    const { succeeded, durationMs, isTimeout, retry = null } = outcome
    const now = nowMs()
    endpoint.lastAtMs = now
    endpoint.slowAtMs = durationMs > SLOW_MS ? now : -Infinity
    endpoint.timedOutAtMs = isTimeout ? now : -Infinity
    if (succeeded) {
      endpoint.succeededRunningMs = runningMs()
      endpoint.typicalSuccessMs = average(endpoint.typicalSuccessMs, durationMs)
      // Time-outs of before are over.
      endpoint.typicalMs = endpoint.typicalSuccessMs
      grow(endpoint)
      return
    }
    endpoint.typicalMs = average(endpoint.typicalMs, durationMs)
    endpoint.failedAtMs = now
    if (!isTimeout) return
    if (retry !== null && retry.inMs <= MAX_EXPECTED_MS)
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
    if (endpoint.slots.size >= limitOf(endpoint)) return defer(endpoint, deliveryId)
    endpoint.expected.delete(deliveryId)
    return takeSlot(endpoint)
  }

  /** Each round of POSTs before this delivery takes as long as one POST does; before the first outcome its limit is unknown. */
  function defer(endpoint: Endpoint, deliveryId: string): Deferral {
    forgetGone(endpoint)
    const { expected, typicalMs } = endpoint
    expected.delete(deliveryId)
    const isUnknown = typicalMs === null && !isHanging(endpoint, runningMs())
    const rounds = Math.ceil((expected.size + 1) / (isUnknown ? maxLimit : limitOf(endpoint)))
    const retryAfterMs = Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, rounds * (typicalMs ?? ASSUMED_MS)))
    expected.set(deliveryId, nowMs() + retryAfterMs + EXPECTED_TTL_MS)
    return { retryAfterMs }
  }

  /** In the order in which they were noted, so that the first ones are enough. */
  function forgetGone({ expected }: Endpoint): void {
    for (const [deliveryId, goneAtMs] of expected) {
      if (goneAtMs > nowMs()) return
      expected.delete(deliveryId)
    }
  }

  function slowness(endpoint: Endpoint): 'hanging' | 'slow' | null {
    const sinceMs = nowMs() - SLOW_TTL_MS
    if (isHanging(endpoint, runningMs()) || endpoint.timedOutAtMs >= sinceMs) return 'hanging'
    return endpoint.slowAtMs >= sinceMs ? 'slow' : null
  }

  function isWorthWaiting(endpoint: Endpoint): boolean {
    const { slots, waiting, typicalMs } = endpoint
    if (isHanging(endpoint, runningMs()) || slots.size + waiting.size >= maxLimit) return false
    return Math.ceil((waiting.size + 1) / limitOf(endpoint)) * (typicalMs ?? 0) <= MAX_WAIT_MS
  }

  return {
    acquire,
    async acquireSoon(webhookId, deliveryId) {
      const endpoint = endpointOf(webhookId)
      if (endpoint.slots.size < limitOf(endpoint) || !isWorthWaiting(endpoint))
        return acquire(webhookId, deliveryId)
      const slot = await nextSlot(endpoint)
      if (slot === null) return acquire(webhookId, deliveryId)
      endpoint.expected.delete(deliveryId)
      return slot
    },
    health(webhookId, readAtMs) {
      const endpoint = endpoints.get(webhookId)
      if (endpoint === undefined) return 'unproven'
      const slow = slowness(endpoint)
      if (slow !== null) return slow
      if (endpoint.failedAtMs >= readAtMs) return 'failing'
      return endpoint.typicalSuccessMs === null ? 'unproven' : 'healthy'
    },
    limit(webhookId) {
      const endpoint = endpoints.get(webhookId)
      return endpoint === undefined ? initialLimit : limitOf(endpoint)
    },
    hasFreeSlot(webhookId) {
      const endpoint = endpoints.get(webhookId)
      return endpoint === undefined || endpoint.slots.size < limitOf(endpoint)
    },
    succeededElsewhere: (webhookId) => grow(endpointOf(webhookId)),
    freeSlots(webhookId) {
      const endpoint = endpointOf(webhookId)
      forgetGone(endpoint)
      return Math.max(0, limitOf(endpoint) - endpoint.slots.size - endpoint.expected.size)
    },
    slow: () => [...endpoints].flatMap(([id, endpoint]) => (slowness(endpoint) === null ? [] : [id])),
  }
}

/** Returns the slot that is free when all before this caller have one; null after MAX_WAIT_MS. */
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

function average(typicalMs: number | null, newestMs: number): number {
  return typicalMs === null ? newestMs : typicalMs + NEWEST_SHARE * (newestMs - typicalMs)
}

function forgetIdle(endpoints: Map<string, Endpoint>, now: number): void {
  for (const [id, { slots, waiting, expected, lastAtMs }] of endpoints)
    if (slots.size + waiting.size + expected.size === 0 && lastAtMs < now - SLOW_TTL_MS) endpoints.delete(id)
}
