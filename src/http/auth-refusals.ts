import { createHash } from 'node:crypto'
import { isKeyShaped, MIN_DEMO_KEY_LENGTH, MIN_KEY_LENGTH } from '../domain/api-key-shape.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import type { KnownCredentials } from './known-credentials.ts'
import type { RateLimit } from './rate-limits.ts'

/** What a request proves its caller with. An empty value is none. */
export type Credential = { kind: 'key' | 'session' | 'ticket'; value: string }

/**
 * Why a credential was refused, for the operator only: the sender is never told. `unknown`: also a key that is revoked or
 * expired. `short`: a key of the demo organisation's length, where these do not count.
 */
type RefusalReason = 'missing' | 'malformed' | 'short' | 'unknown' | 'session' | 'ticket'

type Refused = { credential: Credential; address: string; operationId: string; requestId: string }

/** Limits, counts and logs the credentials that are refused. */
export type AuthRefusals = {
  /** Throws 429 before anything is looked up, where too many were refused to this address. Known credentials pass. */
  check(address: string, credential: Credential): Promise<void>
  /** Throws 429 when this one is beyond the limit too. */
  refused(refused: Refused): Promise<void>
}

const SIGN_IN = 'signIn'

export function createAuthRefusals(dependencies: {
  limit: RateLimit | null
  known: KnownCredentials
  logger: Logger
  metrics: Metrics
}): AuthRefusals {
  const { limit, known, logger, metrics } = dependencies
  let wasShortKeyExplained = false

  /** Once per process: whoever seeded the demo organisation should learn why its keys do not count. */
  function explainShortKeys(): void {
    if (wasShortKeyExplained) return
    wasShortKeyExplained = true
    const text = `Keys of less than ${MIN_KEY_LENGTH} characters count only in a process that listens on loopback`
    logger.warn({ event: 'auth.short_keys_refused' }, text)
  }

  return {
    async check(address, credential) {
      if (limit !== null && !known.has(hashOf(credential))) await limit.check(address)
    },
    async refused({ credential, address, operationId, requestId }) {
      const reason = reasonOf(credential)
      known.delete(hashOf(credential))
      metrics.authRefused(operationId === SIGN_IN ? 'sign_in' : 'request', reason)
      logger.warn({ event: 'auth.refused', reason, address, operationId, requestId }, 'auth.refused')
      if (reason === 'short') explainShortKeys()
      await limit?.count(address)
    },
  }
}

function hashOf({ value }: Credential): Buffer {
  return createHash('sha256').update(value, 'utf8').digest()
}

function reasonOf({ kind, value }: Credential): RefusalReason {
  if (kind !== 'key') return kind
  if (value === '') return 'missing'
  if (isKeyShaped(value, MIN_KEY_LENGTH)) return 'unknown'
  return isKeyShaped(value, MIN_DEMO_KEY_LENGTH) ? 'short' : 'malformed'
}
