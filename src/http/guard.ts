import type { DataSource } from 'typeorm'
import { findCaller, type Caller } from '../db/queries/api-keys.ts'
import { missingPermissions } from '../domain/permissions.ts'
import { forbidden, notFound, unauthenticated } from '../errors.ts'

/** Any 20 to 200 visible ASCII characters can be a key; anything else is not looked up. */
const KEY_SHAPE = /^[\x21-\x7e]{20,200}$/

/** The caller behind the `x-api-key` header. The same 401 for every reason there can be. */
export async function authenticate(dataSource: DataSource, header: string): Promise<Caller> {
  const caller = KEY_SHAPE.test(header) ? await findCaller(dataSource, header) : null
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
