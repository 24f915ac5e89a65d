import type { FailureCode } from './attempt-outcome.ts'
import type { DeliveryState } from './delivery-state.ts'

/** What deliveries of a webhook can be selected by; null selects by nothing. */
export type DeliveryFilter = {
  state: DeliveryState | null
  eventKey: string | null
  /** Of the answer to the latest attempt. */
  statusCode: number | null
  /** Created then or later. */
  since: Date | null
  /** Created before that. */
  until: Date | null
  /** Of any attempt, as are the two times: one attempt has to fit all three. */
  failureCode: FailureCode | null
  /** Attempted then or later. */
  attemptedSince: Date | null
  /** Attempted before that. */
  attemptedUntil: Date | null
}

/** Deliveries of a webhook: those named, or those that fit; null limits nothing. */
export type DeliverySelection = { deliveryIds: string[] | null; filter: DeliveryFilter | null }

export const EVERY_DELIVERY: DeliverySelection = { deliveryIds: null, filter: null }

export const NO_FILTER: DeliveryFilter = {
  state: null,
  eventKey: null,
  statusCode: null,
  since: null,
  until: null,
  failureCode: null,
  attemptedSince: null,
  attemptedUntil: null,
}

/**
 * What a retry job covers: permanently `failed` deliveries; those and the waiting ones (`force`); those that were
 * `stopped` with their webhook or subscription; or all of these and the discarded ones (`undelivered`).
 */
export const RETRY_MODES = ['failed', 'force', 'stopped', 'undelivered'] as const

export type RetryMode = (typeof RETRY_MODES)[number]

/** Returns what a command was limited to, for the audit trail: nothing where it was not. */
export function selectionForAudit({ deliveryIds, filter }: DeliverySelection): Record<string, unknown> {
  if (deliveryIds !== null) return { deliveryIds }
  if (filter === null) return {}
  return { filter: Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== null)) }
}

/** Which events a replay sends: those that the webhook has no delivery of (`missing`), or these and the others (`all`). */
export const REPLAY_INCLUDES = ['missing', 'all'] as const

/**
 * The events of a replay. `until` is exclusive, null: until now; `eventKeys` null: every key that the webhook is subscribed
 * to.
 */
export type ReplayRange = {
  since: Date
  until: Date | null
  eventKeys: string[] | null
  include: (typeof REPLAY_INCLUDES)[number]
}
