import { createHash, randomBytes } from 'node:crypto'
import { RateLimiterMemory, type IRateLimiterOptions, type RateLimiterRes } from 'rate-limiter-flexible'
import { ProblemError } from '../../problem-error.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { LimitName } from '../../observability/metrics/requests.ts'
import { senderNetwork } from '../middleware/trusted-proxies.ts'

/** Quotas; 0 for no limit. */
export type RateLimitSettings = {
  /** Requests per API key within ten seconds, without published events. */
  management: number
  /** Published events per API key within ten seconds. */
  publish: number
  /** Failed authentications per address within a minute. */
  authFailures: number
  /** Requests per address within a minute that need no key: open routes, signing in, unknown paths. */
  open: number
}

/** `id`: of an API key, or an address. */
export type RateLimit = {
  /** Counts one request; returns the headers for the answer, or throws 429 `rate_limited`. */
  count(id: string): Promise<Record<string, string>>
  /** Throws what the next `count` would throw, without counting. */
  check(id: string): Promise<void>
  /** Counts `points` of what is no request, and never throws 429. */
  add(id: string, points: number): Promise<void>
}

/**
 * Null where there is no limit. `management` and `publish` count API key ids, `validation` the milliseconds of a
 * member's payloads in threads, the others addresses.
 */
export type RateLimits = Record<LimitName, RateLimit | null>

type CreateCounter = (options: IRateLimiterOptions) => RateLimiterMemory

type Observers = { metrics: Metrics }

type Policy = { name: LimitName; quota: number; windowSeconds: number; detail: string }

/** Allows a burst of ten times the average second. */
const KEY_WINDOW_SECONDS = 10
const ADDRESS_WINDOW_SECONDS = 60

/** A quarter of the time of two threads, half of that of one: some 500 ordinary payloads of 256 KiB. */
const VALIDATION_MS = 5_000

/** Creates the limits of this process, in its memory. `createCounter` is a seam for tests. */
export function createRateLimits(
  settings: RateLimitSettings,
  observers: Observers,
  createCounter: CreateCounter = (options) => new RateLimiterMemory(options),
): RateLimits {
  const limitOf = (name: LimitName, quota: number, windowSeconds: number, detail: string): RateLimit | null =>
    createLimit({ name, quota, windowSeconds, detail }, observers, createCounter)
  const perKey = (name: LimitName, quota: number, what: string): RateLimit | null =>
    limitOf(name, quota, KEY_WINDOW_SECONDS, `${what} within ${KEY_WINDOW_SECONDS} seconds.`)
  const bucketOf = createBuckets()
  const perAddress = (name: LimitName, quota: number, detail: string): RateLimit | null => {
    const limit = limitOf(name, quota, ADDRESS_WINDOW_SECONDS, detail)
    if (limit === null) return null
    const idOf = (address: string): string => bucketOf(senderNetwork(address))
    return {
      count: (address) => limit.count(idOf(address)),
      check: (address) => limit.check(idOf(address)),
      add: (address, points) => limit.add(idOf(address), points),
    }
  }
  const { management, publish, authFailures, open } = settings
  const failed = 'Too many requests without a valid API key came from this address.'
  return {
    management: perKey('management', management, `This key may make ${management} requests`),
    publish: perKey('publish', publish, `This key may publish ${publish} events`),
    validation: perKey(
      'validation',
      VALIDATION_MS,
      `Checking payloads of this member may take ${VALIDATION_MS} ms`,
    ),
    authentication: perAddress('authentication', authFailures, failed),
    open: perAddress('open', open, 'Too many requests came from this address.'),
  }
}

function createLimit(policy: Policy, { metrics }: Observers, createCounter: CreateCounter): RateLimit | null {
  const { name, quota, windowSeconds, detail } = policy
  if (quota === 0) return null
  const counter = createCounter({ points: quota, duration: windowSeconds, keyPrefix: '' })
  const item = `"${name}"`
  // draft-ietf-httpapi-ratelimit-headers-11, sections 3 and 4.
  const headersOf = (left: number, resetSeconds: number) => ({
    'ratelimit-policy': `${item};q=${quota};w=${windowSeconds}`,
    ratelimit: `${item};r=${left};t=${resetSeconds}`,
  })

  function refuse({ msBeforeNext }: RateLimiterRes): never {
    metrics.requestLimited(name)
    const seconds = inSeconds(msBeforeNext)
    throw rateLimited(detail, seconds, headersOf(0, seconds))
  }

  return {
    async count(id) {
      // Counts as `consume` does, but never rejects.
      const counted = await counter.penalty(id)
      if (counted.consumedPoints > quota) refuse(counted)
      return headersOf(counted.remainingPoints, inSeconds(counted.msBeforeNext))
    },
    async check(id) {
      const counted = await counter.get(id)
      if (counted !== null && counted.consumedPoints >= quota) refuse(counted)
    },
    async add(id, points) {
      await counter.penalty(id, points)
    },
  }
}

/** Rounds up, so that a client that waits this long is not too early. */
function inSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}

function rateLimited(detail: string, seconds: number, headers: Record<string, string>): ProblemError {
  return new ProblemError('rate_limited', {
    detail: `${detail} Try again in ${seconds} s.`,
    headers: { ...headers, 'retry-after': String(seconds) },
  })
}

/**
 * Maps addresses to 65,536 buckets, so that a flood of addresses takes 30 MB at most. Two addresses in one bucket share
 * a count: at worst one gets a 429 in place of a 401. The salt keeps senders from choosing whose bucket they share.
 */
function createBuckets(): (network: string) => string {
  const salt = randomBytes(16)
  return (network) => createHash('sha256').update(salt).update(network).digest('hex').slice(0, 4)
}
