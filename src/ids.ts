import { v7 } from 'uuid'

/** Form of the ids that Posthorn makes, in requests: upper-case digits are the same id. */
export const UUID_PATTERN = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
const UUID = new RegExp(UUID_PATTERN)

/** Form of the ids that the platform gives: of organisations and of members. */
export const PLATFORM_ID_PATTERN = '^[A-Za-z0-9_-]{1,64}$'
const PLATFORM_ID = new RegExp(PLATFORM_ID_PATTERN)

/**
 * Returns a new time-ordered id (UUID version 7): index-friendly, not guessable from its neighbours, and greater than
 * every id that this process made before.
 */
export function newId(): string {
  return v7()
}

/** Returns the lowest id that can be made at an instant, in Unix ms. */
export function firstIdAt(ms: number): string {
  const digits = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`
}

/** Returns the instant at which an id was made, in Unix ms. */
export function instantOfId(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16)
}

/** Returns whether `text` has the form of an id that the platform gives. */
export function isPlatformId(text: string): boolean {
  return PLATFORM_ID.test(text)
}

/** Returns the id that a request names, in lower case as it is stored; null for text that is none, which is not queried. */
export function parseUuid(text: string): string | null {
  return UUID.test(text) ? text.toLowerCase() : null
}
