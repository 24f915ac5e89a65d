import type { Caller } from '../domain/actor.ts'
import type { OperatorScope } from '../domain/permissions.ts'
import type { AuditActor } from '../db/queries/audit.ts'

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
