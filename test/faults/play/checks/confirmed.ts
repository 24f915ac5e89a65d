import { numberPosts, type NumberedPost } from '../attempt-numbers.ts'
import { faultsDuring } from '../flight.ts'
import { byDelivery } from '../group.ts'
import type { PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'what a receiver confirmed stays confirmed'

/**
 * A POST that was answered 2xx completes its delivery, unless the process that sent it was killed, or paused for longer
 * than a POST may take, before it could record that.
 */
export function checkConfirmed(record: PlayRecord): Violation[] {
  const violations: Violation[] = []
  const attempts = byDelivery(record.facts.attempts)
  const posts = byDelivery(record.posts)
  for (const { id, state } of record.facts.deliveries) {
    const numbered = numberPosts(posts.get(id) ?? [], attempts.get(id) ?? [])
    for (const post of numbered.filter((one) => isConfirmed(one) && !mayBeUnread(one, record))) {
      if (state !== 'completed')
        violations.push({
          rule: RULE,
          deliveryId: id,
          detail: `post ${post.id} was confirmed, but it is ${state}`,
        })
      const failed = attempts
        .get(id)
        ?.find(({ number, outcome }) => number === post.number && outcome === 'failed')
      if (failed !== undefined)
        violations.push({
          rule: RULE,
          deliveryId: id,
          detail: `post ${post.id} was confirmed, but attempt ${failed.number} is recorded as ${failed.failureCode}`,
        })
    }
  }
  return violations
}

function mayBeUnread(post: NumberedPost, { faults, attemptTimeoutMs }: PlayRecord): boolean {
  return faultsDuring(post, faults).some(
    ({ kind, from, to }) => kind === 'kill' || (kind === 'pause' && to - from >= attemptTimeoutMs / 2),
  )
}

function isConfirmed({ status }: { status: number | null }): boolean {
  return status !== null && status >= 200 && status < 300
}
