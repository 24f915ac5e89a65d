import type { Catalogue } from '../catalogue/catalogue.ts'
import type { KeyRights } from '../db/queries/api-keys.ts'
import {
  mayReadPayload,
  missingPermissions,
  permissionsForSubscription,
  WILDCARD,
  type Grants,
} from '../domain/permissions.ts'

/** The requested event keys, `*` alone for all; null for all that the member may see. */
export type RequestedEventKeys = readonly string[] | null

/** Returns the permissions that the member lacks for a stream of these keys. */
export function missingForStream(
  { permissionFor }: Catalogue,
  requested: RequestedEventKeys,
  grants: Grants,
): string[] {
  return missingPermissions(grants, permissionsForSubscription(requested ?? [], permissionFor))
}

/** Returns the event keys that a member may see. Test events are sent to their webhook only. */
function visibleKeys({ eventKeys, permissionFor }: Catalogue, grants: Grants): string[] {
  return eventKeys.map(({ key }) => key).filter((key) => mayReadPayload(grants, key, permissionFor))
}

/** Returns the event keys that a stream sends. */
export function streamedKeys(catalogue: Catalogue, requested: RequestedEventKeys, grants: Grants): string[] {
  return requested === null || requested.includes(WILDCARD) ? visibleKeys(catalogue, grants) : [...requested]
}

/** Returns a fingerprint of the key's value and of what its member may see: a stream ends when it changes. */
export function rightsFingerprint(catalogue: Catalogue, rights: KeyRights): string {
  return JSON.stringify([rights.hash.toString('hex'), rights.fullAccess, visibleKeys(catalogue, rights)])
}
