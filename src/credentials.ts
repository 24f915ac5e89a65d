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

/** Length of an API key, in visible ASCII characters. */
export const MIN_KEY_LENGTH = 32
export const MAX_KEY_LENGTH = 200

/** Length of the keys of the demo organisation, which are valid only in a process that listens on loopback. */
export const MIN_DEMO_KEY_LENGTH = 20

const VISIBLE_ASCII = /^[\x21-\x7e]*$/

/** True for what can be an API key, of at least `minLength` characters. */
export function isKeyShaped(text: string, minLength: number): boolean {
  return text.length >= minLength && text.length <= MAX_KEY_LENGTH && VISIBLE_ASCII.test(text)
}

/** Different characters of a random key: of 10,000 keys of 32 hexadecimal digits one has fewer. */
const MIN_DIFFERENT = 10

/** Characters that are neither equal nor adjacent in ASCII to the one before: not `aaaa`, not `1234`. */
const MIN_JUMPS = 16

/** True for a key that is not random: few different characters, long runs, or a repeated part. */
export function isWeakKey(key: string): boolean {
  const codes = Array.from(key, (character) => character.charCodeAt(0))
  const jumps = codes.filter((code, index) => index === 0 || Math.abs(code - (codes[index - 1] ?? code)) > 1)
  return new Set(codes).size < MIN_DIFFERENT || jumps.length < MIN_JUMPS || repeatsItself(key)
}

/** True when the key repeats a part of at most half its length. */
function repeatsItself(key: string): boolean {
  for (let period = 1; period <= key.length / 2; period++) if (key.startsWith(key.slice(period))) return true
  return false
}
