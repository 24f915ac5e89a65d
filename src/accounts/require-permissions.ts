import { missingPermissions, type Grants } from '../domain/permissions.ts'
import { forbidden } from '../errors.ts'

/** Throws 403 naming the permissions that the member lacks. */
export function requirePermissions(grants: Grants, required: readonly string[]): void {
  const missing = missingPermissions(grants, required)
  if (missing.length > 0) throw forbidden(missing)
}
