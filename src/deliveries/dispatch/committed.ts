import type { CommittedDelivery } from '../protocol/commit-events.ts'
import type { ClaimedDelivery } from './inline-attempts.ts'
import type { HeldDelivery } from './workflow-starts.ts'

/** Returns a delivery whose commit was its claim; null for one that is pending. */
export function claimedByCommit(delivery: CommittedDelivery, nowMs: number): ClaimedDelivery | null {
  const { organisationId, deliveryId, webhookId, eventKey, url, owner, committedAtMs, payload } = delivery
  if (owner === null) return null
  const claim = {
    owner,
    runs: 1,
    isRequested: false,
    ageMs: nowMs - committedAtMs,
    webhookId,
    eventKey,
    url,
    ...payload,
  }
  return {
    organisationId,
    deliveryId,
    webhookId,
    eventKey,
    url,
    number: 1,
    claim,
    claimedAtMs: committedAtMs,
  }
}

/** Returns a pending delivery as its row is left to this process: the workflow reads the payload again. */
export function withoutPayload(delivery: CommittedDelivery): HeldDelivery {
  const { organisationId, deliveryId, webhookId, eventKey, url, sweepAt, heldUntilMs } = delivery
  const label = { organisationId, deliveryId, webhookId, eventKey, url }
  return { ...label, sweepAt, heldUntilMs, attempts: 0, nextAttemptAt: null }
}
