import { timingSafeEqual } from 'node:crypto'
import { hashCredential } from '../../credentials.ts'
import type { Operator } from '../../accounts/operator.ts'
import { ProblemError } from '../../errors.ts'
import type { OperatorKey, OperatorScope } from '../../domain/permissions.ts'

/** An operator key that was found; its secret is left out. */
type KnownOperatorKey = { name: string; scopes: readonly OperatorScope[] }

export type OperatorKeys = {
  /** False where none is set: then the service has no operator routes. */
  isConfigured: boolean
  /** Returns the key with this secret, or null. */
  find(secret: string): KnownOperatorKey | null
}

/** Compares with every key by its hash, so that the time of a look-up says nothing about any secret. */
export function createOperatorKeys(keys: readonly OperatorKey[]): OperatorKeys {
  const hashed = keys.map(({ name, scopes, secret }) => ({
    hash: hashCredential(secret),
    key: { name, scopes },
  }))
  return {
    isConfigured: keys.length > 0,
    find(secret) {
      const given = hashCredential(secret)
      const [found] = hashed.filter(({ hash }) => timingSafeEqual(hash, given))
      return found?.key ?? null
    },
  }
}

/** Throws 403 unless the key has the scope. */
export function requireScope({ scopes }: Pick<Operator, 'scopes'>, scope: OperatorScope): void {
  if (scopes.includes(scope)) return
  throw new ProblemError('missing_scope', { detail: `This operator key lacks the scope ${scope}.` })
}
