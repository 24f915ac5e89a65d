import { groupBy, rowErrorMs } from '../ledger.ts'
import type { PlayRecord, Violation } from '../record.ts'

const RULE = 'everything comes to its end'

/** How late what is due may be where nothing disturbs, in ms; it is at rest when it waits for a later time. */
const DUE_WITHIN_MS = 2_000
/** At an endpoint that hangs deliveries wait for each other, but one after the other is made. */
const HANGING_MS = 60_000
/** Within so long all recovers, where the machine has no other work. */
const RECOVERED_MS = 180_000

/** What a play left unfinished; on a machine that was busy to the end nothing can be said. */
export function checkUnfinished(record: PlayRecord): Violation[] {
  const { faults, endedAt } = record
  const isBusy = faults.some(({ kind, to }) => kind === 'busy_machine' && to > endedAt - RECOVERED_MS)
  return isBusy ? [] : unfinished(record)
}

/** Nothing is left that is to go on by itself and does not: deliveries that are due, jobs, notifications, erasures. */
export function unfinished(record: PlayRecord): Violation[] {
  const { facts, faults, endedAt } = record
  if (facts === null) return []
  const dueWithinMs = DUE_WITHIN_MS + rowErrorMs(faults)
  const posts = groupBy(record.posts, ({ webhookId }) => webhookId)
  const hanging = new Set(record.webhooks.filter(({ hangsAtEnd }) => hangsAtEnd).map(({ id }) => id))
  const violations: Violation[] = []
  const violation = (detail: string, deliveryId: string | null = null): void =>
    void violations.push({ rule: RULE, deliveryId, detail })
  for (const { id, webhookId, state, createdAt, nextAttemptAt, row } of facts.deliveries) {
    if (state !== 'pending' && state !== 'waiting' && state !== 'in_progress') continue
    const dueAt = nextAttemptAt ?? createdAt
    if (state === 'waiting' && dueAt > endedAt - dueWithinMs) continue
    const lastPostAt = Math.max(0, ...(posts.get(webhookId) ?? []).map(({ arrivedAt }) => arrivedAt))
    if (hanging.has(webhookId) && lastPostAt > endedAt - HANGING_MS) continue
    violation(`still ${state} ${Math.round(endedAt - dueAt)} ms after it was due: ${row}`, id)
  }
  for (const { id, state } of facts.retryJobs) {
    const isHeld = facts.deliveries.some(
      ({ webhookId, state: of }) => hanging.has(webhookId) && (of === 'waiting' || of === 'in_progress'),
    )
    if (state === 'running' && !isHeld) violation(`retry job ${id} is still ${state}`)
  }
  const open = new Set(facts.incidents.filter(({ closedAt }) => closedAt === null).map(({ id }) => id))
  for (const { id, state, incidentId, createdAt } of facts.notifications)
    if (state === 'pending' && !open.has(incidentId) && createdAt < endedAt - dueWithinMs)
      violation(`notification ${id} is still ${state}, and its incident is closed`)
  for (const organisationId of facts.halfErased) violation(`organisation ${organisationId} is not erased`)
  return violations
}
