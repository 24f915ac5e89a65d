import { eventKeys } from '../catalogue/catalogue.ts'
import type { KeyRights } from '../db/queries/api-keys.ts'
import {
  mayReadEvent,
  missingPermissions,
  permissionsForSubscription,
  WILDCARD,
  type Grants,
} from '../domain/permissions.ts'

/** The event keys that a stream was asked for by name, `*` alone for all; null for all that the member may see. */
export type AskedKeys = readonly string[] | null

/** What the caller lacks for a stream of these keys. */
export function missingForStream(asked: AskedKeys, grants: Grants): string[] {
  return missingPermissions(grants, permissionsForSubscription(asked ?? []))
}

/** The event keys that a member may see at all. Test events are their webhook's alone, and none of these. */
export function visibleKeys(grants: Grants): string[] {
  return eventKeys.map(({ key }) => key).filter((key) => mayReadEvent(grants, key))
}

/** The event keys that a stream sends. */
export function streamedKeys(asked: AskedKeys, grants: Grants): string[] {
  return asked === null || asked.includes(WILDCARD) ? visibleKeys(grants) : [...asked]
}

/** What must stay as it is for a stream to go on: the key's value, and what its member may see. */
export function rightsMark(rights: KeyRights): string {
  return JSON.stringify([rights.hash.toString('hex'), rights.fullAccess, visibleKeys(rights)])
}
