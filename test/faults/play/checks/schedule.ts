import { waitAfterAttempt } from '../../../../src/domain/retry-schedule.ts'
import { numberPosts, type NumberedPost } from '../attempt-numbers.ts'
import { byDelivery } from '../group.ts'
import type { AttemptFacts, PlayRecord, UserAction } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'no attempt early'

/** Instants of the receiver's own are exact; those of a POST without an answer are the sender's. In ms. */
const EXACT_TOLERANCE_MS = 10
const RECORDED_TOLERANCE_MS = 250
/** A retry job may reach a delivery that long after it was asked for. */
const RETRY_JOB_LIMIT_MS = 60_000

/** No POST begins before the wait of the schedule since the end of the attempt before, unless a member asked for it. */
export function checkSchedule(record: PlayRecord): Violation[] {
  const violations: Violation[] = []
  const posts = byDelivery(record.posts)
  const attempts = byDelivery(record.facts.attempts)
  for (const { id, webhookId } of record.facts.deliveries) {
    const recorded = attempts.get(id) ?? []
    const numbered = numberPosts(posts.get(id) ?? [], recorded, record.faults)
    for (const post of numbered) {
      const detail = earliness(record, { id, webhookId }, { post, numbered, recorded })
      if (detail !== null) violations.push({ rule: RULE, deliveryId: id, detail })
    }
  }
  return violations
}

function earliness(
  record: PlayRecord,
  delivery: { id: string; webhookId: string },
  of: { post: NumberedPost; numbered: NumberedPost[]; recorded: AttemptFacts[] },
): string | null {
  const { post, numbered, recorded } = of
  const before = recorded.find(({ number }) => number === post.number - 1)
  if (before === undefined) return null
  const postBefore = numbered.find(({ number, isRecorded }) => isRecorded && number === before.number)
  const isExact = postBefore !== undefined && postBefore.status !== null
  const endedAt = isExact ? postBefore.endedAt! : before.endedAt
  const waitMs = waitAfterAttempt(before.number) ?? Infinity
  const tooEarlyMs =
    endedAt + waitMs - (isExact ? EXACT_TOLERANCE_MS : RECORDED_TOLERANCE_MS) - post.arrivedAt
  if (tooEarlyMs <= 0) return null
  const own = recorded.find(({ number }) => number === post.number)
  if (own?.trigger === 'retry') return null
  // Where the attempt was made more than once, its record may be of a run that was not the one asked for.
  const isOnly = numbered.filter(({ number }) => number === post.number).length === 1
  const wasAsked = record.actions.some((action) => mayHaveAskedFor(action, delivery, before.startedAt, post))
  if (wasAsked && !(isOnly && post.isRecorded)) return null
  return `post ${post.id} (attempt ${post.number}) came ${Math.round(tooEarlyMs)} ms before its time`
}

function mayHaveAskedFor(
  { kind, webhookId, deliveryId, from, to }: UserAction,
  delivery: { id: string; webhookId: string },
  sinceMs: number,
  post: NumberedPost,
): boolean {
  if (from > post.arrivedAt) return false
  if (kind === 'retry') return deliveryId === delivery.id && to >= sinceMs
  if (kind !== 'retry_all' || (webhookId !== null && webhookId !== delivery.webhookId)) return false
  return to + RETRY_JOB_LIMIT_MS >= sinceMs
}
