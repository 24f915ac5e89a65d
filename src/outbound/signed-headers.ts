import { createHmac } from 'node:crypto'
import packageJson from '../../package.json' with { type: 'json' }

/** The `User-Agent` of every POST to a receiver. */
export const USER_AGENT = `Posthorn/${packageJson.version}`

/**
 * Value of the signature header for `body`: `sha256=` and the lower-case hex HMAC-SHA256 of exactly these bytes.
 * The key is the 64-character secret *as shown*, as UTF-8 text. It is hex but is not decoded, because a
 * receiver passes the string it was given straight to its HMAC function; for the same reason it is never re-cased.
 */
export function sign(secret: string, body: Buffer): string {
  return `sha256=${createHmac('sha256', Buffer.from(secret, 'utf8')).update(body).digest('hex')}`
}

/** Returns the headers of spec 4.4 and 5.2. `id`: of the delivery, the same on every attempt. */
export function signedHeaders(id: string, secret: string, body: Buffer): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'X-Webhook-Event-ID': id,
    'X-Webhook-Signature': sign(secret, body),
  }
}

/**
 * Returns the headers of an attempt but the signature, as they are shown to members; the client adds two of them. None
 * where the payload is erased: no attempt is made.
 */
export function shownHeaders(id: string, body: Buffer | null): Record<string, string> {
  if (body === null) return {}
  return {
    'User-Agent': USER_AGENT,
    'Content-Type': 'application/json',
    'Content-Length': String(body.length),
    'X-Webhook-Event-ID': id,
  }
}
