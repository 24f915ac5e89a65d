import { numberPosts, type NumberedPost } from '../attempt-numbers.ts'
import { faultsDuring } from '../flight.ts'
import { byDelivery } from '../group.ts'
import type { AttemptFacts, PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'what a receiver confirmed stays confirmed'

/**
 * A POST that was answered 2xx completes its delivery, unless the process that sent it was killed before it could record
 * that. One that was paused meanwhile may have lost the attempt to another, whose outcome counts; by itself it records
 * no failure.
 */
export function checkConfirmed(record: PlayRecord): Violation[] {
  const violations: Violation[] = []
  const attempts = byDelivery(record.facts.attempts)
  const posts = byDelivery(record.posts)
  for (const { id, state } of record.facts.deliveries) {
    const recorded = attempts.get(id) ?? []
    const numbered = numberPosts(posts.get(id) ?? [], recorded, record.faults)
    for (const post of numbered.filter(isConfirmed)) {
      const detail = contradiction(record, post, { state, recorded, numbered })
      if (detail !== null)
        violations.push({ rule: RULE, deliveryId: id, detail: `post ${post.id} ${detail}` })
    }
  }
  return violations
}

function contradiction(
  { faults, attemptTimeoutMs }: PlayRecord,
  post: NumberedPost,
  of: { state: string; recorded: AttemptFacts[]; numbered: NumberedPost[] },
): string | null {
  const hits = faultsDuring(post, faults)
  if (hits.some(({ kind }) => kind === 'kill')) return null
  const wasPaused = hits.some(({ kind, from, to }) => kind === 'pause' && to - from >= attemptTimeoutMs / 2)
  if (of.state !== 'completed' && !wasPaused) return `was confirmed, but its delivery is ${of.state}`
  const failed = of.recorded.find(({ number, outcome }) => number === post.number && outcome === 'failed')
  if (failed === undefined) return null
  const isOfAnother = of.numbered.some(({ number, isRecorded }) => isRecorded && number === post.number)
  if (wasPaused && isOfAnother) return null
  return `was confirmed, but attempt ${failed.number} is recorded as ${failed.failureCode}`
}

function isConfirmed({ status }: { status: number | null }): boolean {
  return status !== null && status >= 200 && status < 300
}
