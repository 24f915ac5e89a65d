import { missingPermissions, type Grants } from '../domain/permissions.ts'
import { forbidden, ProblemError } from '../errors.ts'
import type { Caller, KeyCaller } from '../domain/actor.ts'

/** Throws 403 naming the permissions that the member lacks. */
export function requirePermissions(grants: Grants, required: readonly string[]): void {
  const missing = missingPermissions(grants, required)
  if (missing.length > 0) throw forbidden(missing)
}

/** Returns the caller where it has an API key. Throws 403 where it is signed in by a portal link. */
export function requireKey<SomeCaller extends Caller>(caller: SomeCaller): SomeCaller & KeyCaller {
  const { apiKeyId, keyHash } = caller
  if (apiKeyId !== null && keyHash !== null) return { ...caller, apiKeyId, keyHash }
  throw new ProblemError('needs_api_key', { detail: 'A session of a portal link cannot do this.' })
}
