import { byDelivery } from '../group.ts'
import type { Fault, PlayRecord, UserAction } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'no retry that was accepted is forgotten'

/** A retry leads to a POST within that time, where no fault is in the way; in ms. */
const POSTED_WITHIN_MS = 60_000

/** An accepted retry leads to a POST, unless the attempt in progress succeeded or the delivery was stopped. */
export function checkRetries(record: PlayRecord): Violation[] {
  const { actions, posts, facts, faults } = record
  const ledger = byDelivery(posts)
  return actions
    .filter(({ kind, status }) => kind === 'retry' && status === 202)
    .flatMap((retry): Violation[] => {
      const { deliveryId, from } = retry
      const delivery = facts.deliveries.find(({ id }) => id === deliveryId)
      if (delivery === undefined || wasStopped(actions, retry)) return []
      const until = extended(from + POSTED_WITHIN_MS, from, faults)
      const posted = (ledger.get(delivery.id) ?? []).some(
        ({ arrivedAt }) => arrivedAt >= from && arrivedAt <= until,
      )
      const { state, completedAt } = delivery
      if (posted || (state === 'completed' && completedAt !== null && completedAt <= until)) return []
      return [
        { rule: RULE, deliveryId, detail: `no POST within ${Math.round(until - from)} ms of the retry` },
      ]
    })
}

/** By the time of the last fault in progress, and a while after it. */
function extended(until: number, from: number, faults: readonly Fault[]): number {
  return faults
    .filter((fault) => fault.to >= from)
    .sort((one, other) => one.from - other.from)
    .reduce((end, fault) => (fault.from <= end ? Math.max(end, fault.to + POSTED_WITHIN_MS) : end), until)
}

function wasStopped(actions: readonly UserAction[], { webhookId, deliveryId, from }: UserAction): boolean {
  return actions.some(
    (action) =>
      action.to >= from &&
      ((action.kind === 'discard' && action.deliveryId === deliveryId) ||
        ((action.kind === 'switch_off' || action.kind === 'discard_failed') &&
          action.webhookId === webhookId)),
  )
}
