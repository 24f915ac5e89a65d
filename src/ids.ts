import { v7 } from 'uuid'

/**
 * A new time-ordered id (UUID version 7): index-friendly, not guessable from its neighbours, and after all that this
 * process gave before.
 */
export function newId(): string {
  return v7()
}
