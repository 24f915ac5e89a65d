import type { StoredPayload } from '../../db/queries/deliveries.ts'
import { mayReadPayload, type Grants, type PermissionFor } from '../../domain/permissions.ts'

/**
 * Returns the payload of an event as JSON text, byte for byte as it is delivered; `null` to a reader that may not see it,
 * and where it is erased.
 */
export function presentPayload(
  { eventKey, body }: { eventKey: string; body: Buffer | null },
  reader: Grants,
  permissionFor: PermissionFor,
): string {
  return body !== null && mayReadPayload(reader, eventKey, permissionFor) ? body.toString('utf8') : 'null'
}

/** Presents since when the payload is erased, and by whom; null where it is not. */
export function presentErasure({ erasedAt, erasedBy }: Omit<StoredPayload, 'body'>) {
  return erasedAt === null || erasedBy === null ? null : { at: erasedAt.toISOString(), by: erasedBy }
}

/**
 * Returns the JSON text of an object with the members of `before`, then `name` with the text `json` byte for byte, then
 * the members of `after`. `before` has at least one member.
 */
export function embedJson(before: object, name: string, json: string, after: object = {}): string {
  const head = JSON.stringify(before).slice(0, -1)
  const tail = JSON.stringify(after).slice(1)
  return `${head},${JSON.stringify(name)}:${json}${tail === '}' ? '' : ','}${tail}`
}
