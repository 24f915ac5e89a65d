import { randomBytes } from 'node:crypto'

/** Returns 16 random bytes as 32 hexadecimal characters, the form of a W3C trace id. */
export function generateTraceId(): string {
  return randomBytes(16).toString('hex')
}
