import { waitAfterAttempt } from '../../../../src/domain/retry-schedule.ts'
import {
  byDelivery,
  faultsDuring,
  HOLDS_UP,
  isConfirmed,
  isReadLate,
  numberPosts,
  RECORDED_WITHIN_MS,
  rowErrorMs,
  type NumberedPost,
} from '../ledger.ts'
import type { AttemptFacts, DeliveryFacts, LedgerPost, PlayRecord, UserAction, Violation } from '../record.ts'

const TWICE = 'no attempt twice'
const EARLY = 'no attempt early'
const CONFIRMED = 'what a receiver confirmed stays confirmed'

/** Instants of the receiver's own are exact; those of a POST without an answer are the sender's. In ms. */
const EXACT_TOLERANCE_MS = 10
const RECORDED_TOLERANCE_MS = 250
/** So late a sender may read an answer without a fault. */
const READ_TOLERANCE_MS = 50
/** A retry job may reach a delivery that long after it was asked for. */
const RETRY_JOB_LIMIT_MS = 180_000

/** Of each delivery: its attempts are numbered, none is made twice or early, and none is lost that was confirmed. */
export function checkAttempts(record: PlayRecord): Violation[] {
  const posts = byDelivery(record.posts)
  const attempts = byDelivery(record.facts?.attempts ?? [])
  const deliveries = new Map(record.facts?.deliveries.map((delivery) => [delivery.id, delivery]))
  const ids = record.facts === null ? [...posts.keys()] : [...deliveries.keys()]
  return ids.flatMap((id) => {
    const recorded = attempts.get(id) ?? []
    const numbered = numberPosts(posts.get(id) ?? [], recorded, record.faults)
    const of = { id, delivery: deliveries.get(id) ?? null, recorded, numbered }
    return [...checkTwice(record, of), ...checkEarly(record, of), ...checkConfirmed(record, of)]
  })
}

type Of = { id: string; delivery: DeliveryFacts | null; recorded: AttemptFacts[]; numbered: NumberedPost[] }

/**
 * An attempt has one record, and one POST; a further one only where it is charged to a fault of the process that sent the
 * one before.
 */
function checkTwice(record: PlayRecord, { id, delivery, recorded, numbered }: Of): Violation[] {
  const violations: Violation[] = []
  const violation = (detail: string): void => void violations.push({ rule: TWICE, deliveryId: id, detail })
  const numbers = recorded.map(({ number }) => number).sort((one, other) => one - other)
  if (
    delivery !== null &&
    (numbers.length !== delivery.attempts || numbers.some((one, at) => one !== at + 1))
  )
    violation(`${delivery.attempts} attempts, recorded: ${numbers.join(', ')}`)
  if (recorded.filter(({ outcome }) => outcome === 'succeeded').length > 1)
    violation('several attempts are recorded as succeeded')
  for (const post of numbered) {
    const { number, repeats } = post
    if (repeats !== null && repeats.chargedTo === null && !isAfterRows(record, repeats.post, post))
      violation(
        `post ${post.id} repeats post ${repeats.post.id} (attempt ${number}) of ${repeats.post.sender}, which no fault hit`,
      )
  }
  return violations
}

/** Whether the first of two POSTs, one after the other, ended when the rows had been read: its attempt is on none of them. */
function isAfterRows({ facts, endedAt }: PlayRecord, first: LedgerPost, second: LedgerPost): boolean {
  const firstEndedAt = first.endedAt ?? Infinity
  return facts !== null && firstEndedAt > endedAt && firstEndedAt <= second.arrivedAt
}

/** No POST begins before the wait of the schedule since the end of the attempt before, unless a member asked for it. */
function checkEarly(record: PlayRecord, of: Of): Violation[] {
  return of.numbered.flatMap((post) => {
    const detail = earliness(record, of, post)
    return detail === null ? [] : [{ rule: EARLY, deliveryId: of.id, detail }]
  })
}

function earliness(record: PlayRecord, { id, numbered, recorded }: Of, post: NumberedPost): string | null {
  const number = post.number - 1
  const before = recorded.find((attempt) => attempt.number === number)
  const postBefore = numbered.find(
    (one) => one.number === number && (record.facts === null || one.recordedAt !== null),
  )
  if (before === undefined && postBefore === undefined) return null
  const wasReadLate =
    before !== undefined && postBefore !== undefined && isReadLate(before, postBefore, record.faults)
  const isExact = postBefore !== undefined && postBefore.status !== null && !wasReadLate
  const endedAt = isExact ? postBefore.endedAt! : (before?.endedAt ?? postBefore!.endedAt ?? Infinity)
  const waitMs = waitAfterAttempt(number) ?? Infinity
  const toleranceMs = (isExact ? EXACT_TOLERANCE_MS : RECORDED_TOLERANCE_MS) + rowErrorMs(record.faults)
  const tooEarlyMs = endedAt + waitMs - toleranceMs - post.arrivedAt
  if (tooEarlyMs <= 0) return null
  const own = recorded.find((attempt) => attempt.number === post.number)
  if (own?.trigger === 'retry') return null
  // Where the attempt was made more than once, its record may be of a run that was not the one asked for.
  const isOnly = numbered.filter((one) => one.number === post.number).length === 1
  const startedAt = before?.startedAt ?? postBefore!.arrivedAt
  const wasAsked = record.actions.some((action) =>
    mayHaveAskedFor(action, { id, webhookId: post.webhookId }, startedAt, post),
  )
  if (wasAsked && !(isOnly && post.recordedAt !== null)) return null
  return `post ${post.id} (attempt ${post.number}) came ${Math.round(tooEarlyMs)} ms before its time`
}

function mayHaveAskedFor(
  { kind, webhookId, deliveryId, from, to }: UserAction,
  delivery: { id: string; webhookId: string },
  sinceMs: number,
  post: NumberedPost,
): boolean {
  if (from > post.arrivedAt) return false
  if (kind === 'retry' || kind === 'signal_retry') return deliveryId === delivery.id && to >= sinceMs
  if (kind !== 'retry_all' || (webhookId !== null && webhookId !== delivery.webhookId)) return false
  return to + RETRY_JOB_LIMIT_MS >= sinceMs
}

/**
 * A POST that was answered 2xx completes its delivery, unless the process that sent it was killed before it could record
 * that. One that was paused meanwhile may have lost the attempt to another, whose outcome counts; by itself it records
 * no failure.
 */
function checkConfirmed(record: PlayRecord, of: Of): Violation[] {
  if (of.delivery === null) return []
  return of.numbered.filter(isConfirmed).flatMap((post) => {
    const detail = contradiction(record, of.delivery!, of, post)
    return detail === null
      ? []
      : [{ rule: CONFIRMED, deliveryId: of.id, detail: `post ${post.id} of ${post.sender} ${detail}` }]
  })
}

function contradiction(
  { faults, attemptTimeoutMs, endedAt }: PlayRecord,
  { state }: DeliveryFacts,
  { recorded, numbered }: Of,
  post: NumberedPost,
): string | null {
  const hits = faultsDuring(post, faults)
  if (hits.some(({ kind }) => kind === 'kill')) return null
  const wasPaused = hits.some(
    ({ kind, from, to }) =>
      HOLDS_UP.includes(kind) && (kind !== 'pause' || to - from >= attemptTimeoutMs / 2),
  )
  // The rows may have been read before it had to be recorded.
  const mayBeUnrecorded = post.endedAt! > endedAt - RECORDED_WITHIN_MS
  if (state !== 'completed' && !wasPaused && !mayBeUnrecorded)
    return `was confirmed, but its delivery is ${state}`
  const failed = recorded.find(({ number, outcome }) => number === post.number && outcome === 'failed')
  // The sender's time was over by then: the receiver read the POST late, or the sender the answer.
  const isLate = (end: number): boolean => end - rowErrorMs(faults) <= post.endedAt!
  if (
    failed === undefined ||
    isLate(failed.endedAt) ||
    isLate(failed.startedAt + attemptTimeoutMs - READ_TOLERANCE_MS)
  )
    return null
  const isOfAnother = numbered.some((other) => other !== post && other.number === post.number)
  if (wasPaused && isOfAnother) return null
  return `was confirmed, but attempt ${failed.number} is recorded as ${failed.failureCode}`
}
