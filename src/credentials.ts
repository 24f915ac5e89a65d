import { hash, randomBytes } from 'node:crypto'

const TOKEN_BYTES = 32

/** Returns the token of a new session, stream ticket or portal link: 32 random bytes as base64url. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

/**
 * SHA-256 of an API key, operator key or token, by which it is stored and compared. All are random enough that a slow
 * hash would add nothing.
 */
export function hashCredential(credential: string): Buffer {
  return hash('sha256', credential, 'buffer')
}
