import { v7 } from 'uuid'

/** A new time-ordered id (UUID version 7): index-friendly and not guessable from its neighbours. */
export function newId(): string {
  return v7()
}
