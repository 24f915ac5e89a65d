import { numberPosts } from '../attempt-numbers.ts'
import { mayBeRepeated } from '../flight.ts'
import { byDelivery } from '../group.ts'
import type { PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'no attempt twice'

/**
 * An attempt has one record, and one POST; a further one only where a fault hit while the one before was in progress or
 * not recorded yet. So the duplicates are at most the POSTs in flight at each fault.
 */
export function checkDuplicates(record: PlayRecord): Violation[] {
  const violations: Violation[] = []
  const posts = byDelivery(record.posts)
  const attempts = byDelivery(record.facts.attempts)
  for (const { id, attempts: count } of record.facts.deliveries) {
    const recorded = attempts.get(id) ?? []
    const numbers = recorded.map(({ number }) => number).sort((one, other) => one - other)
    if (numbers.length !== count || numbers.some((number, index) => number !== index + 1))
      violations.push({
        rule: RULE,
        deliveryId: id,
        detail: `${count} attempts, recorded: ${numbers.join(', ')}`,
      })
    if (recorded.filter(({ outcome }) => outcome === 'succeeded').length > 1)
      violations.push({ rule: RULE, deliveryId: id, detail: 'several attempts are recorded as succeeded' })
    const numbered = numberPosts(posts.get(id) ?? [], recorded, record.faults)
    for (const [index, post] of numbered.entries()) {
      const before = numbered.slice(0, index).findLast(({ number }) => number === post.number)
      if (before === undefined || mayBeRepeated(before, post.arrivedAt, record.faults)) continue
      const detail = `post ${post.id} repeats post ${before.id} (attempt ${post.number}), which no fault hit`
      violations.push({ rule: RULE, deliveryId: id, detail })
    }
  }
  return violations
}
