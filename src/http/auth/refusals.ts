import { RateLimiterMemory } from 'rate-limiter-flexible'
import { hashCredential, isKeyShaped, MIN_DEMO_KEY_LENGTH, MIN_KEY_LENGTH } from '../../credentials.ts'
import { ProblemError } from '../../problem-error.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { RefusalReason } from '../../observability/metrics/requests.ts'
import type { KnownCredentials } from '../../accounts/caller-lookup.ts'
import type { RateLimit } from '../limits/rate-limits.ts'
import { senderNetwork } from '../middleware/trusted-proxies.ts'

/** What authenticates a request; an empty value is a missing credential. */
export type Credential = {
  kind: 'key' | 'session' | 'ticket' | 'operator' | 'operator_session' | 'portal_link'
  value: string
}

type Asked = { credential: Credential; address: string; operationId: string; requestId: string }

/** Limits, counts and logs the credentials that are refused. */
export type AuthRefusals = {
  /**
   * Finds what a credential stands for, and records a 401 of `find` as a refusal. Throws 429 while too many credentials of
   * the address were refused, before any query; known ones pass, and a few others of each kind that have the shape of a key.
   */
  guard<Found>(asked: Asked, find: () => Promise<Found>): Promise<Found>
}

const SIGN_IN = new Set(['signIn', 'signInOperator', 'openPortalLink'])

/**
 * Credentials of each kind that are looked up per second for an address beyond its limit: a valid one that this process
 * has not seen gets through, also where all senders share the address of a proxy, and then is known. Refused keys leave
 * the lookups of sessions and operator keys free.
 */
const RESERVED_LOOKUPS_PER_SECOND = 5

export function createAuthRefusals(dependencies: {
  limit: RateLimit | null
  known: KnownCredentials
  logger: Logger
  metrics: Metrics
  /** Per second, address and kind. */
  reservedLookups?: number
}): AuthRefusals {
  const { limit, known, logger, metrics, reservedLookups = RESERVED_LOOKUPS_PER_SECOND } = dependencies
  const reserve = new RateLimiterMemory({ points: reservedLookups, duration: 1 })
  /** Of credentials that are not known, by hash; they never reject. */
  const firstLookups = new Map<string, Promise<void>>()
  let wasShortKeyExplained = false

  /** Logs once per process, for the operator who seeded the demo organisation. */
  function explainShortKeys(): void {
    if (wasShortKeyExplained) return
    wasShortKeyExplained = true
    const text = `Keys of less than ${MIN_KEY_LENGTH} characters count only in requests to a loopback host, in a process that listens on loopback`
    logger.warn({ event: 'auth.short_keys_refused' }, text)
  }

  /** Returns whether it is counted already: many that are sent at once are limited too. */
  async function check({ address, credential: { kind, value } }: Asked, isKnown: boolean): Promise<boolean> {
    if (limit === null || isKnown) return false
    try {
      await limit.count(address)
      return true
    } catch (error) {
      if (!isKeyShaped(value, MIN_KEY_LENGTH)) throw error
      await reserve.consume(`${kind} ${senderNetwork(address)}`).catch(() => {
        throw error
      })
      return false
    }
  }

  function record({ credential, operationId, address, requestId }: Asked): void {
    const reason = reasonOf(credential)
    known.delete(hashCredential(credential.value))
    metrics.authRefused(SIGN_IN.has(operationId) ? 'sign_in' : 'request', reason)
    logger.warn({ event: 'auth.refused', reason, address, operationId, requestId })
    if (reason === 'short') explainShortKeys()
  }

  async function lookUp<Found>(asked: Asked, find: () => Promise<Found>, isKnown: boolean): Promise<Found> {
    const isCounted = await check(asked, isKnown)
    let isRefused = false
    try {
      return await find()
    } catch (error) {
      isRefused = error instanceof ProblemError && error.problem.status === 401
      if (isRefused) record(asked)
      if (isRefused && !isCounted) await limit?.count(asked.address)
      throw error
    } finally {
      if (isCounted && !isRefused) await limit?.add(asked.address, -1)
    }
  }

  return {
    async guard(asked, find) {
      const hash = hashCredential(asked.credential.value)
      if (limit === null || known.has(hash)) return lookUp(asked, find, true)
      const name = hash.toString('base64')
      const first = firstLookups.get(name)
      if (first !== undefined) {
        // A valid credential is known by then: one that is sent often at once is no guessing.
        await first
        return lookUp(asked, find, known.has(hash))
      }
      const found = lookUp(asked, find, false)
      const end = (): void => void firstLookups.delete(name)
      firstLookups.set(name, found.then(end, end))
      return found
    },
  }
}

function reasonOf({ kind, value }: Credential): RefusalReason {
  if (value === '') return 'missing'
  if (kind === 'operator_session') return 'session'
  if (kind !== 'key') return kind
  if (isKeyShaped(value, MIN_KEY_LENGTH)) return 'unknown'
  return isKeyShaped(value, MIN_DEMO_KEY_LENGTH) ? 'short' : 'malformed'
}
