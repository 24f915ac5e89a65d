import type { Slot } from './endpoints.ts'

/**
 * How an endpoint, the receiving side of a webhook, does as far as this process has seen: `slow` ones answer late,
 * `hanging` ones not at all.
 */
export type EndpointHealth = 'healthy' | 'unproven' | 'failing' | 'slow' | 'hanging'

export function isSlowOrHanging(health: EndpointHealth): boolean {
  return health === 'slow' || health === 'hanging'
}

/** Begun at `beganAtMs`, and on the clock of the time during which this process runs. */
export type Post = { beganAtMs: number | null; beganRunningMs: number }

/** What a process knows of one endpoint. */
export type Endpoint = {
  limit: number
  /** True until the first reduction: each success then adds a whole slot. */
  isSlowStart: boolean
  reducedAtMs: number
  slots: Set<Post>
  /** POSTs in flight, the oldest first. */
  posts: Set<Post>
  /** Those that wait for a slot, in order. */
  waiting: Set<(slot: Slot) => void>
  /** Deliveries that come back soon, deferred ones and retries of time-outs, each with the time when it counts as gone. */
  expected: Map<string, number>
  /** What a POST takes, and what one that succeeds takes; null until there was one. */
  typicalMs: number | null
  typicalSuccessMs: number | null
  succeededRunningMs: number
  failedAtMs: number
  slowAtMs: number
  /** Of a time-out, if nothing ended otherwise since. */
  timedOutAtMs: number
  lastAtMs: number
}

/** An endpoint hangs with a POST in flight for so long, three times longer than successes take, and none meanwhile. */
const HANGING_AFTER_MS = 1_000
const HANGING_FACTOR = 3

export function newEndpoint(limit: number): Endpoint {
  return {
    limit,
    isSlowStart: true,
    reducedAtMs: -Infinity,
    slots: new Set(),
    posts: new Set(),
    waiting: new Set(),
    expected: new Map(),
    typicalMs: null,
    typicalSuccessMs: null,
    succeededRunningMs: -Infinity,
    failedAtMs: -Infinity,
    slowAtMs: -Infinity,
    timedOutAtMs: -Infinity,
    lastAtMs: -Infinity,
  }
}

export function isHanging(
  { posts, typicalSuccessMs, succeededRunningMs }: Endpoint,
  nowRunningMs: number,
): boolean {
  const [oldest] = posts
  if (oldest === undefined) return false
  return (
    nowRunningMs - Math.max(oldest.beganRunningMs, succeededRunningMs) >
    Math.max(HANGING_AFTER_MS, HANGING_FACTOR * (typicalSuccessMs ?? 0))
  )
}
