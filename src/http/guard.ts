import type { Caller } from '../db/queries/api-keys.ts'
import { isKeyShaped, MIN_KEY_LENGTH } from '../domain/api-key-shape.ts'
import { missingPermissions } from '../domain/permissions.ts'
import { forbidden, notFound, unauthenticated } from '../errors.ts'
import type { CallerLookup } from './caller-lookup.ts'

/** Looked up in the place of what cannot be a key, so that it takes as long as any other. No key is that short. */
const NO_KEY = ''

/**
 * The caller behind the `x-api-key` header. The same 401, after the same work, for every reason there can be. Of two
 * headers Node makes `a, b`, which is no key for its space, whatever the two hold.
 */
export async function authenticate(
  findCaller: CallerLookup,
  header: string,
  minKeyLength = MIN_KEY_LENGTH,
): Promise<Caller> {
  const caller = await findCaller(isKeyShaped(header, minKeyLength) ? header : NO_KEY)
  if (caller === null) throw unauthenticated()
  return caller
}

/** 404 for every organisation but the caller's own, whether it exists or not. */
export function requireOrganisation(caller: Caller, organisationId: string | undefined): void {
  if (caller.organisationId !== organisationId) throw notFound('organisation')
}

/** 403 naming what the caller's member lacks. */
export function requirePermissions(caller: Caller, required: readonly string[]): void {
  const missing = missingPermissions(caller, required)
  if (missing.length > 0) throw forbidden(missing)
}
