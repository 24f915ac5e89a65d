import { timingSafeEqual } from 'node:crypto'
import { hashCredential } from '../credentials.ts'
import type { Caller } from '../domain/actor.ts'
import type { OperatorKey, OperatorScope } from '../domain/permissions.ts'
import type { AuditActor } from '../db/queries/audit.ts'
import { ProblemError } from '../problem-error.ts'

/** The platform's own backend, known by an operator key, with the origin of its request. */
export type Operator = {
  /** Of the key; never its secret. */
  name: string
  scopes: readonly OperatorScope[]
  /** SHA-256 of the secret. */
  keyHash: Buffer
  address: string
  requestId: string
}

/** Returns the operator as the audit trail of an organisation names it: `operator:NAME`. */
export function operatorInAudit(
  { name, address, requestId }: Pick<Operator, 'name' | 'address' | 'requestId'>,
  organisationId: string,
): AuditActor {
  return { organisationId, memberId: null, apiKeyId: null, actor: `operator:${name}`, address, requestId }
}

/**
 * Whose the idempotency keys of all operators are. They share them, so that a request that is repeated after the rotation
 * of an operator key still takes effect once. No member has this id.
 */
const OPERATORS = 'operator:*'

/** Returns the caller as which an operator acts in an organisation: the scope of its key admits it, and no permission. */
export function callerOfOperator(organisationId: string): Caller {
  return {
    organisationId,
    memberId: OPERATORS,
    apiKeyId: '',
    keyHash: Buffer.alloc(0),
    fullAccess: false,
    permissions: [],
    isErasing: false,
  }
}

/** An operator key that was found; of its secret only the hash. */
export type KnownOperatorKey = Pick<Operator, 'name' | 'scopes' | 'keyHash'>

export type OperatorKeys = {
  /** False where none is set: then the service has no operator routes. */
  isConfigured: boolean
  /** Returns the key whose secret has this hash, or null. */
  find(keyHash: Buffer): KnownOperatorKey | null
}

/** Compares with every key by its hash, so that the time of a look-up says nothing about any secret. */
export function createOperatorKeys(keys: readonly OperatorKey[]): OperatorKeys {
  const hashed = keys.map(({ name, scopes, secret }) => ({ name, scopes, keyHash: hashCredential(secret) }))
  return {
    isConfigured: keys.length > 0,
    find(given) {
      const [found] = hashed.filter(({ keyHash }) => timingSafeEqual(keyHash, given))
      return found ?? null
    },
  }
}

/** Throws 403 unless the key has the scope. */
export function requireScope({ scopes }: Pick<Operator, 'scopes'>, scope: OperatorScope): void {
  if (scopes.includes(scope)) return
  throw new ProblemError('missing_scope', { detail: `This operator key lacks the scope ${scope}.` })
}
