import { mayReadPayload, type Grants, type PermissionFor } from '../../domain/permissions.ts'

/** Returns the payload of an event as JSON text, byte for byte as it is delivered; `null` to a reader that may not see it. */
export function presentPayload(
  { eventKey, body }: { eventKey: string; body: Buffer },
  reader: Grants,
  permissionFor: PermissionFor,
): string {
  return mayReadPayload(reader, eventKey, permissionFor) ? body.toString('utf8') : 'null'
}
