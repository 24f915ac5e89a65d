// Hand-written: rows are found webhook by webhook in turn, each by a probe of a partial index, without reading the rest.
import type { FailureCode } from '../../domain/attempt-outcome.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import type { DeliveryLabel } from '../../domain/workflow-inputs.ts'
import { sql, type Db } from '../connection/db.ts'

/** Deliveries that are not final and have no workflow (`delivery_unstarted_idx`). */
export const UNSTARTED = `(delivery.completed_at IS NULL AND delivery.workflow_started_at IS NULL)`

/** Those that are not final and have one (`delivery_started_idx`). */
export const STARTED = `(delivery.completed_at IS NULL AND delivery.workflow_started_at IS NOT NULL)`

/** Final deliveries whose workflow is owed a signal (`delivery_signal_idx`). */
export const IS_OWED_SIGNAL = `(delivery.completed_at IS NOT NULL AND delivery.sweep_at IS NOT NULL
  AND delivery.workflow_started_at IS NOT NULL)`

/** Final deliveries that were attempted without a workflow and are owed one (`delivery_follow_idx`). */
export const IS_OWED_WORKFLOW = `(delivery.completed_at IS NOT NULL AND delivery.sweep_at IS NOT NULL
  AND delivery.workflow_started_at IS NULL)`

/** When the next attempt of a delivery should have begun. */
export const DUE_AT = `coalesce(delivery.next_attempt_at, delivery.workflow_started_at, delivery.created_at)`

/** What the workflow of a delivery is named by, with its event and its webhook. */
const LABEL = `delivery.id AS "deliveryId", delivery.organisation_id AS "organisationId",
            delivery.webhook_id AS "webhookId", event.key AS "eventKey", webhook.url`

/** Of a webhook at least so many are found, if there are and it has room for them: no more are read of each of many. */
const MIN_PER_WEBHOOK = 20

type SweepOptions = {
  limit: number
  defaultRoom: number
  rooms: readonly { webhookId: string; room: number }[]
}

/**
 * Finds deliveries, of those that `which` selects, that are due for the sweeper: in turn by webhook, of each those that
 * are due longest, as many as it has room. `columns`: SQL for what to read of a delivery besides its label.
 */
function findDue<Row>(
  db: Db,
  which: string,
  columns: string,
  { limit, defaultRoom, rooms }: SweepOptions,
): Promise<Row[]> {
  return sql(
    `WITH RECURSIVE hook AS (
       (SELECT webhook_id AS id FROM delivery WHERE ${which} ORDER BY webhook_id LIMIT 1)
       UNION ALL
       SELECT (SELECT webhook_id FROM delivery WHERE ${which} AND webhook_id > hook.id ORDER BY webhook_id LIMIT 1)
         FROM hook WHERE hook.id IS NOT NULL
     ), due AS (
       SELECT oldest.*, row_number() OVER (PARTITION BY hook.id ORDER BY oldest.sweep_at) AS place
         FROM hook
         LEFT JOIN unnest(:webhookIds::uuid[], :rooms::int[]) AS given (id, room) ON given.id = hook.id
         CROSS JOIN LATERAL (
           SELECT * FROM delivery
            WHERE ${which} AND webhook_id = hook.id AND sweep_at < delivery_now()
            ORDER BY sweep_at
            LIMIT least(coalesce(given.room, :defaultRoom::int),
                        greatest(${MIN_PER_WEBHOOK}, 2 * :limit::bigint / (SELECT greatest(1, count(id)) FROM hook)))
         ) oldest
     ), found AS (
       SELECT * FROM due ORDER BY place, sweep_at LIMIT :limit::bigint
     )
     SELECT ${LABEL}, delivery.attempts, delivery.next_attempt_at AS "nextAttemptAt", delivery.sweep_at AS "sweepAt",
            greatest(0, ceil(extract(epoch FROM delivery.next_attempt_at - delivery_now()) * 1000))::float8 AS "dueInMs"${columns}
       FROM found AS delivery
       JOIN event ON event.id = delivery.event_id
       JOIN webhook ON webhook.id = delivery.webhook_id
      ORDER BY delivery.place, delivery.sweep_at`,
    {
      limit,
      defaultRoom,
      webhookIds: rooms.map(({ webhookId }) => webhookId),
      rooms: rooms.map(({ room }) => room),
    },
  ).rows(db)
}

/** A delivery without a workflow that any process may take up. `attempts` > 0: its first attempt failed without one. */
export type UnstartedDelivery = DeliveryLabel & {
  attempts: number
  nextAttemptAt: Date | null
  /** 0 for what is overdue. */
  dueInMs: number
  sweepAt: Date
}

/**
 * Finds up to `limit` deliveries without a workflow that are due for the sweeper, in turn by webhook: of each as many as
 * it has room, `defaultRoom` where it is not listed. Takes nothing.
 */
export function findUnstarted(db: Db, options: SweepOptions): Promise<UnstartedDelivery[]> {
  return findDue(db, UNSTARTED, '', options)
}

/** A delivery that is late, though it has a workflow. */
export type OverdueDelivery = UnstartedDelivery & {
  state: DeliveryState
  /** A user requested the next attempt at once, and the workflow may not have been signalled. */
  retryRequested: boolean
  /** Since when its workflow is paused in Temporal, if that was seen before. */
  pausedSince: Date | null
  /** For how many ms it has been due, by the database's clock. */
  lateMs: number
}

/** Finds up to `limit` deliveries with a workflow that are due for the sweeper, in turn by webhook. Takes nothing. */
export function findOverdue(db: Db, limit: number): Promise<OverdueDelivery[]> {
  const columns = `, delivery.state, delivery.retry_requested AS "retryRequested", delivery.paused_since AS "pausedSince",
            greatest(0, extract(epoch FROM delivery_now() - ${DUE_AT}) * 1000)::float8 AS "lateMs"`
  return findDue(db, STARTED, columns, { limit, defaultRoom: limit, rooms: [] })
}

/** A final delivery whose workflow waits and is owed a signal. */
export type OwedSignal = { deliveryId: string; sweepAt: Date }

/** Finds final deliveries whose workflow is owed a signal, those first that have waited longest. */
export function findOwedSignals(db: Db, limit: number): Promise<OwedSignal[]> {
  return sql(
    `SELECT id AS "deliveryId", sweep_at AS "sweepAt" FROM delivery
      WHERE ${IS_OWED_SIGNAL} AND sweep_at < delivery_now() ORDER BY sweep_at LIMIT :limit`,
    { limit },
  ).rows(db)
}

/** A final delivery that was attempted without a workflow, and is owed one that follows; with its latest attempt. */
export type OwedWorkflow = DeliveryLabel & {
  state: Extract<DeliveryState, 'completed' | 'failed' | 'stopped'>
  attempts: number
  failureCode: FailureCode | null
  statusCode: number | null
  attemptedAt: Date | null
  sweepAt: Date
}

/** Finds final deliveries that are owed a workflow, those first that have waited longest. */
export function findOwedWorkflows(db: Db, limit: number): Promise<OwedWorkflow[]> {
  return sql(
    `SELECT ${LABEL}, delivery.state, delivery.attempts, attempt.failure_code AS "failureCode",
            attempt.status_code AS "statusCode", attempt.started_at AS "attemptedAt", delivery.sweep_at AS "sweepAt"
       FROM (SELECT * FROM delivery WHERE ${IS_OWED_WORKFLOW} AND sweep_at < delivery_now()
              ORDER BY sweep_at LIMIT :limit) delivery
       JOIN event ON event.id = delivery.event_id
       JOIN webhook ON webhook.id = delivery.webhook_id
       LEFT JOIN attempt ON attempt.delivery_id = delivery.id AND attempt.number = delivery.attempts
      ORDER BY delivery.sweep_at`,
    { limit },
  ).rows(db)
}

/** How many deliveries are owed a workflow, and since when; null where none is. */
export function findOwed(db: Db): Promise<{ count: number; since: Date } | null> {
  return sql(
    `SELECT count(*)::int AS count, min(completed_at) AS since FROM delivery WHERE ${IS_OWED_WORKFLOW}
     HAVING count(*) > 0`,
  ).first(db)
}

/** How the first attempts of these deliveries stand: `open`, not made yet; `completed`; or made otherwise, or not to be made. */
export async function findFirstAttempts(
  db: Db,
  deliveryIds: readonly string[],
): Promise<Map<string, 'open' | 'completed' | 'other'>> {
  const found = await sql(
    `SELECT id, CASE WHEN attempts = 0 AND completed_at IS NULL THEN 'open'
                     WHEN state = 'completed' THEN 'completed' ELSE 'other' END AS state
       FROM delivery WHERE id = ANY(:deliveryIds::uuid[])`,
    { deliveryIds },
  ).rows<{ id: string; state: 'open' | 'completed' | 'other' }>(db)
  return new Map(found.map(({ id, state }) => [id, state]))
}

/**
 * Makes everything due for the sweeper besides deliveries that had a workflow: open incidents, incidents with messages
 * left to send, retry jobs and erasures. Temporal has lost its data, and with it all workflows.
 */
export async function sweepOthers(db: Db): Promise<void> {
  await sql(`UPDATE incident SET sweep_at = now()
      WHERE closed_at IS NULL
         OR EXISTS (SELECT 1 FROM notification WHERE incident_id = incident.id AND state IN ('pending', 'sending'))`).rows(
    db,
  )
  await sql(`UPDATE organisation_erasure SET sweep_at = now()`).rows(db)
  await sql(`UPDATE retry_job SET sweep_at = now() WHERE sweep_at > now()`).rows(db)
}
