import { findNearest } from './nearest.ts'

/** A longer word might be an API key, which has 32 characters at least. */
const NAMEABLE = /^-{0,2}[A-Za-z][\w-]{0,23}$/

/**
 * Describes a word that is not known as `what`, such as "a command", with the nearest one that is. `place` is said
 * instead of a word that might be a secret or could write to the terminal what it likes.
 */
export function describeUnknown(
  word: string,
  { place, what, known }: { place: string; what: string; known: readonly string[] },
): string {
  if (!NAMEABLE.test(word)) return `${place} is not ${what}`
  const nearest = findNearest(word, known)
  return nearest === null ? `${word} is not ${what}` : `${word} is not ${what}; did you mean ${nearest}?`
}
