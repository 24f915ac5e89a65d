import { sign } from './signature.ts'

/** Returns the headers of spec 4.4 and 5.2. `id`: of the delivery, the same on every attempt. */
export function signedHeaders(id: string, secret: string, body: Buffer): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'X-Webhook-Event-ID': id,
    'X-Webhook-Signature': sign(secret, body),
  }
}
