import { defineQuery, defineSignal } from '@temporalio/workflow'
import type { DeliveryState } from '../src/domain/delivery-state.ts'
import type { AttemptKind } from '../src/domain/task-queues.ts'

/** Input of `deliverEvent`: ids, numbers and settings only; payload, URL and secret stay in PostgreSQL. */
export type DeliverEventInput = {
  organisationId: string
  deliveryId: string
  webhookId: string
  /**
   * The attempt to begin with (1 for a new delivery), when it is due in Unix ms of the database's clock (null: at once),
   * and in how many ms that is. Workflows of 0.1 do not say that: they go by the clock of Temporal.
   */
  next: { number: number; dueAtMs: number | null; waitMs?: number }
  /** Of the attempt to begin with; without it, what its number says. */
  kind?: AttemptKind
  /** How the delivery came to its end without a workflow: nothing is left to do but to show it. */
  recorded?: DeliverEventResult
  /** How long before a retry is due its attempt goes to a worker, which holds it until the instant; 0 for no hold. */
  leadMs: number
}

export type DeliverEventResult = { state: 'completed' | 'failed' | 'stopped'; attempts: number }

/**
 * A person wants the next attempt at once. `noted`: the row says so already; without it (a signal sent by hand) the
 * workflow notes it first. Either way the row decides what happens.
 */
export const retrySignal = defineSignal<[{ noted: boolean }?]>('retry')

/** The row may have become final: the workflow looks, and ends only if it is. */
export const stopSignal = defineSignal('stop')

/** What a delivery's workflow says of itself. Times in Unix ms of the engine's clock. */
export type DeliverySnapshot = {
  state: DeliveryState
  attempts: number
  lastOutcome: string | null
  nextAttemptAtMs: number | null
}

export const deliveryStateQuery = defineQuery<DeliverySnapshot>('deliveryState')

/** Input of `retryDeliveries`. */
export type RetryDeliveriesInput = { organisationId: string; jobId: string }

/**
 * Input of `purge`: for how many days deliveries are kept after their end, and audit entries. `failedDays` is for stopped
 * ones and closed incidents too.
 */
export type PurgeInput = { completedDays: number; failedDays: number; auditDays: number }

/** How many rows went. `finished` is false when the time of one pass was up before everything was gone. */
export type PurgeResult = {
  deliveries: number
  events: number
  incidents: number
  auditEntries: number
  retryJobs: number
  idempotencyKeys: number
  finished: boolean
}

/** Input of `incident`: ids and one setting. `notifyAfterMs`: how long failures have to persist for notification 1. */
export type IncidentInput = {
  organisationId: string
  webhookId: string
  incidentId: string
  notifyAfterMs: number
}

/** The row has changed: opened, failing again, exhausted or closed. The workflow looks. */
export const changedSignal = defineSignal('changed')
