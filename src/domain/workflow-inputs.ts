import type { FailureCode, AttemptQueue, AttemptToStart, NextAttempt } from './attempt-outcome.ts'
import type { DeliveryState, FinalState } from './delivery-state.ts'
import type { IncidentEvaluation, NotificationCounts } from './notification-rules.ts'
import type { OldAttemptKind } from './old-attempts.ts'

/** Input of `deliverEvent`: ids, numbers and settings; payload, URL and secret stay in PostgreSQL. */
export type DeliverEventInput = {
  organisationId: string
  deliveryId: string
  webhookId: string
  /** The first attempt to make (1 for a new delivery). */
  next: AttemptToStart
  /** Task queue of the first attempt to make; by default it follows from the number. */
  queue?: AttemptQueue
  /** The same in inputs of release 0.1; goes with 2.0. */
  kind?: OldAttemptKind
  /** A first attempt that a process made without a workflow: it is only shown, unless a signal came meanwhile. */
  recorded?: RecordedAttempt
  /** How long before an attempt is due its activity starts, and waits in the worker for the instant; 0 for no such wait. */
  leadMs: number
  /** What a run leaves to its successor: the wait as it was, and what it showed. */
  continued?: { next: PlannedAttempt; snapshot: DeliverySnapshot }
}

/** The next attempt to request. `wakeAtMs`: when to request it, on Temporal's clock. */
export type PlannedAttempt = NextAttempt & { wakeAtMs: number }

export type DeliverEventResult = { state: FinalState; attempts: number }

/** The recorded state of a delivery, when its first attempt began (Unix ms), and the answer. Inputs of 0.1 lack the latter. */
export type RecordedAttempt = DeliverEventResult & {
  atMs?: number
  failureCode?: FailureCode | null
  statusCode?: number | null
}

/** Result of the query `deliveryState`. Times in Unix ms of Temporal's clock. */
export type DeliverySnapshot = {
  state: DeliveryState
  attempts: number
  lastOutcome: string | null
  nextAttemptAtMs: number | null
}

/** Input of `retryDeliveries`. */
export type RetryDeliveriesInput = { organisationId: string; jobId: string }

/** Input of `eraseOrganisation`. */
export type EraseOrganisationInput = { organisationId: string }

/**
 * Input of `purge`: after how many days completed deliveries, failed ones and audit entries are deleted. `failedDays` is for
 * stopped deliveries and closed incidents too.
 */
export type PurgeInput = { completedDays: number; failedDays: number; auditDays: number }

/** The numbers of deleted rows. `finished` is false when the time limit of the pass was reached. */
export type PurgeResult = {
  deliveries: number
  events: number
  incidents: number
  auditEntries: number
  retryJobs: number
  idempotencyKeys: number
  finished: boolean
}

/** Input of `incident`. `notifyAfterMs`: how long failures have to persist for notification 1. */
export type IncidentInput = {
  organisationId: string
  webhookId: string
  incidentId: string
  notifyAfterMs: number
}

/** What `incident` asks to be evaluated. `dueFor`: the streak (its `sinceMs`) that has lasted long enough for notification 1. */
export type EvaluationRequest = {
  organisationId: string
  incidentId: string
  dueFor: number | null
  notifyAfterMs: number
}

/** `retry`: notifications that were refused are to be sent again. */
export type UpdateIncidentRequest = EvaluationRequest & { retry: boolean }

/** `evaluation` is null when the incident was deleted. */
export type UpdatedIncident = { evaluation: IncidentEvaluation | null; notifications: NotificationCounts }

/** What starts and labels the workflow of a delivery: ids, and the URL, which is shown shortened. */
export type DeliveryLabel = {
  organisationId: string
  deliveryId: string
  webhookId: string
  eventKey: string
  url: string
}

/** What starts and labels the workflow of an incident: ids, the URL, which is shown shortened, and its beginning. */
export type IncidentLabel = {
  organisationId: string
  webhookId: string
  incidentId: string
  url: string
  openedAt: Date
}
