import { ECDH } from 'node:crypto'
import type { FieldError } from '../../problem-error.ts'
import { urlErrors, type UrlPolicy } from '../../outbound/url-rules.ts'

/** An uncompressed point of P-256: a prefix and two coordinates of 32 bytes (RFC 8291, section 3.1). */
const POINT_BYTES = 65
const UNCOMPRESSED = 0x04

/** RFC 8291, section 3.2. */
const AUTH_BYTES = 16

/**
 * Checks rules of a push subscription that a schema cannot express. Values of the wrong type are left to the schema.
 */
export function pushSubscriptionFieldErrors(
  fields: { readonly endpoint?: unknown; readonly keys?: unknown },
  urlPolicy: UrlPolicy,
): FieldError[] {
  const { endpoint, keys } = fields
  return [
    ...(typeof endpoint === 'string' ? urlErrors('/endpoint', endpoint, urlPolicy) : []),
    ...(typeof keys === 'object' && keys !== null ? keyErrors(keys) : []),
  ]
}

function keyErrors({ p256dh, auth }: { readonly p256dh?: unknown; readonly auth?: unknown }): FieldError[] {
  const errors: FieldError[] = []
  if (typeof p256dh === 'string' && !isPublicKey(decodeBase64url(p256dh))) {
    const detail = 'must be an uncompressed point on P-256: 65 bytes as base64url'
    errors.push({ pointer: '/keys/p256dh', code: 'invalid_public_key', detail })
  }
  if (typeof auth === 'string' && decodeBase64url(auth)?.length !== AUTH_BYTES) {
    const detail = 'must be 16 bytes as base64url'
    errors.push({ pointer: '/keys/auth', code: 'invalid_auth_secret', detail })
  }
  return errors
}

/** Decodes base64url with or without padding; null for any other text. */
function decodeBase64url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url')
  // Encoded again and compared: Node's decoder accepts other characters and trailing bits.
  const plain = bytes.toString('base64url')
  const padded = plain.padEnd(Math.ceil(plain.length / 4) * 4, '=')
  return text === plain || text === padded ? bytes : null
}

/** Returns whether the bytes are a point on the curve; any other would leak secrets or make every message fail. */
function isPublicKey(bytes: Buffer | null): boolean {
  if (bytes?.length !== POINT_BYTES || bytes[0] !== UNCOMPRESSED) return false
  try {
    ECDH.convertKey(bytes, 'prime256v1')
    return true
  } catch {
    return false
  }
}
