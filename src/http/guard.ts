import type { Caller } from '../db/queries/api-keys.ts'
import { missingPermissions } from '../domain/permissions.ts'
import { forbidden, notFound, unauthenticated } from '../errors.ts'
import type { CallerLookup } from './caller-lookup.ts'

/**
 * Any 20 to 200 visible ASCII characters can be a key. Of two headers Node makes `a, b`, which is none for its space,
 * whatever the two hold.
 */
const KEY_SHAPE = /^[\x21-\x7e]{20,200}$/

/** Looked up in the place of what cannot be a key, so that it takes as long as any other. No key is that short. */
const NO_KEY = ''

/** The caller behind the `x-api-key` header. The same 401, after the same work, for every reason there can be. */
export async function authenticate(findCaller: CallerLookup, header: string): Promise<Caller> {
  const caller = await findCaller(KEY_SHAPE.test(header) ? header : NO_KEY)
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
