import { createHash, randomBytes } from 'node:crypto'
import { RateLimiterMemory, RateLimiterRes, type IRateLimiterOptions } from 'rate-limiter-flexible'
import { ProblemError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import { senderNetwork } from './sender-network.ts'

/** How much is allowed; 0 for without limit. */
export type RateLimitSettings = {
  /** Requests per API key within ten seconds, published events aside. */
  management: number
  /** Published events per API key within ten seconds. */
  publish: number
  /** Failed authentications per address within a minute. */
  authFailures: number
  /** Requests per address within a minute to what asks for no key: open routes, signing in, unknown paths. */
  open: number
}

/** `of`: an API key id, or an address. */
export type RateLimit = {
  /** Counts one more; returns the headers for the answer, or throws 429 `rate_limited`. */
  count(of: string): Promise<Record<string, string>>
  /** Throws what the next `count` would throw, and counts nothing. */
  check(of: string): Promise<void>
}

/** Null where there is no limit: then nothing is counted. The first two count API key ids, the others addresses. */
export type RateLimits = Record<LimitName, RateLimit | null>

type Counter = Pick<RateLimiterMemory, 'consume' | 'get'>
type CreateCounter = (options: IRateLimiterOptions) => Counter

type LimitName = 'management' | 'publish' | 'authentication' | 'open'

/** Where limiters tell what they see. */
type Witnesses = { logger: Logger; metrics: Metrics }

type Policy = { name: LimitName; quota: number; windowSeconds: number; detail: string }

/** Long enough for a burst of ten times what a second allows on average. */
const KEY_WINDOW_SECONDS = 10
const ADDRESS_WINDOW_SECONDS = 60

/**
 * The limits of this process, in its memory. A limiter that fails lets everything pass and is logged.
 * `createCounter` is there for tests.
 */
export function createRateLimits(
  settings: RateLimitSettings,
  witnesses: Witnesses,
  createCounter: CreateCounter = (options) => new RateLimiterMemory(options),
): RateLimits {
  const perKey = (name: LimitName, quota: number, what: string): RateLimit | null => {
    const windowSeconds = KEY_WINDOW_SECONDS
    const detail = `This key may ${what} within ${windowSeconds} seconds.`
    return createLimit({ name, quota, windowSeconds, detail }, witnesses, createCounter)
  }
  const slotOf = createSlots()
  const perAddress = (name: LimitName, quota: number, detail: string): RateLimit | null => {
    const policy = { name, quota, windowSeconds: ADDRESS_WINDOW_SECONDS, detail }
    const limit = createLimit(policy, witnesses, createCounter)
    if (limit === null) return null
    const of = (address: string): string => slotOf(senderNetwork(address))
    return { count: (address) => limit.count(of(address)), check: (address) => limit.check(of(address)) }
  }
  const { management, publish, authFailures, open } = settings
  const failed = 'Too many requests without a valid API key came from this address.'
  return {
    management: perKey('management', management, `make ${management} requests`),
    publish: perKey('publish', publish, `publish ${publish} events`),
    authentication: perAddress('authentication', authFailures, failed),
    open: perAddress('open', open, 'Too many requests came from this address.'),
  }
}

function createLimit(policy: Policy, witnesses: Witnesses, createCounter: CreateCounter): RateLimit | null {
  const { logger, metrics } = witnesses
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

  function noteFault(error: unknown): void {
    logger.error({ event: 'http.limiter_fault', policy: name, err: error }, 'http.limiter_fault')
  }

  return {
    async count(of) {
      try {
        const { remainingPoints, msBeforeNext } = await counter.consume(of)
        return headersOf(remainingPoints, inSeconds(msBeforeNext))
      } catch (error) {
        if (error instanceof RateLimiterRes) refuse(error)
        noteFault(error)
        return {}
      }
    },
    async check(of) {
      const counted = await counter.get(of).catch((error: unknown) => {
        noteFault(error)
        return null
      })
      if (counted !== null && counted.consumedPoints >= quota) refuse(counted)
    },
  }
}

/** Rounded up, so that whoever waits so long is not too early. */
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
 * Puts any number of addresses into 65,536 slots, so that a flood of addresses takes some 30 MB and no more. Two
 * addresses in one slot share their count of failures, which costs neither more than a 429 in the place of a 401.
 * Nobody outside knows the salt, and so which address shares a slot with another.
 */
function createSlots(): (network: string) => string {
  const salt = randomBytes(16)
  return (network) => createHash('sha256').update(salt).update(network).digest('hex').slice(0, 4)
}
