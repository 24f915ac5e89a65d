import { mayBeRepeated } from './flight.ts'
import type { AttemptFacts, Fault, LedgerPost } from './record.ts'

/** A POST with the number of the attempt that it was made for. */
export type NumberedPost = LedgerPost & {
  number: number
  /** The attempt was recorded with the answer of this very POST. */
  isRecorded: boolean
}

/** Of a POST that was not answered, the sender's times may differ by that from the receiver's, in ms. */
const TOLERANCE_MS = 500

/**
 * Returns for each POST of one delivery which attempt it was made for, in the order of arrival. A recorded attempt names
 * its POST by the answer's body; one without an answer is known by its time. A POST that no record names was made for
 * the attempt that was next when it arrived, or, where a fault explains that, again for the one before it or the one
 * that completed the delivery.
 */
export function numberPosts(
  posts: readonly LedgerPost[],
  attempts: readonly AttemptFacts[],
  faults: readonly Fault[],
): NumberedPost[] {
  const sorted = [...posts].sort((one, other) => one.arrivedAt - other.arrivedAt)
  const recordedAs = new Map<number, number>()
  for (const { number, responseBody } of attempts) {
    const [, id] = /^post (\d+)$/.exec(responseBody ?? '') ?? []
    if (id !== undefined) recordedAs.set(Number(id), number)
  }
  for (const attempt of attempts) {
    if (attempt.responseBody !== null && attempt.responseBody !== '') continue
    const post = sorted.find(
      ({ id, status, arrivedAt }) =>
        status === null &&
        !recordedAs.has(id) &&
        arrivedAt >= attempt.startedAt - TOLERANCE_MS &&
        arrivedAt <= attempt.endedAt + TOLERANCE_MS,
    )
    if (post !== undefined) recordedAs.set(post.id, attempt.number)
  }
  const completing = attempts.find(({ outcome }) => outcome === 'succeeded')?.number ?? Infinity
  const endOf = (attempt: AttemptFacts): number =>
    sorted.find(({ id }) => recordedAs.get(id) === attempt.number)?.endedAt ?? attempt.endedAt
  const numbered: NumberedPost[] = []
  for (const post of sorted) {
    const recorded = recordedAs.get(post.id)
    const previous = numbered.at(-1)
    const ended = attempts.filter((attempt) => endOf(attempt) <= post.arrivedAt).length
    const isRepeat = previous?.number === ended && mayBeRepeated(previous, post.arrivedAt, faults)
    const next = isRepeat ? ended : Math.min(ended + 1, completing)
    numbered.push({ ...post, number: recorded ?? next, isRecorded: recorded !== undefined })
  }
  return numbered
}
