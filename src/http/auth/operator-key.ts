import { timingSafeEqual } from 'node:crypto'
import { hashCredential } from '../../credentials.ts'
import type { Operator } from '../../accounts/operator.ts'
import { ProblemError } from '../../problem-error.ts'
import type { OperatorKey, OperatorScope } from '../../domain/permissions.ts'

/** An operator key that was found; of its secret only the hash. */
type KnownOperatorKey = Pick<Operator, 'name' | 'scopes' | 'keyHash'>

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
