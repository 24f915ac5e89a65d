// Hand-written: rows are found webhook by webhook in turn, each by a probe of a partial index, without reading the rest.
import type { FailureCode } from '../../domain/attempt-outcome.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import type { DeliveryLabel } from '../../domain/workflow-inputs.ts'
import { sql, type Db } from '../connection/db.ts'

/** Deliveries `d` that are not final and have no workflow (`delivery_unstarted_idx`). */
export const UNSTARTED = `(d.completed_at IS NULL AND d.workflow_started_at IS NULL)`

/** Those that are not final and have one (`delivery_started_idx`). */
export const STARTED = `(d.completed_at IS NULL AND d.workflow_started_at IS NOT NULL)`

/** Final deliveries that were attempted without a workflow and are owed one (`delivery_follow_idx`). */
export const IS_OWED_WORKFLOW = `(d.completed_at IS NOT NULL AND d.sweep_at IS NOT NULL AND d.workflow_started_at IS NULL)`

/** When the next attempt of delivery `d` should have begun. */
export const DUE_AT = `coalesce(d.next_attempt_at, d.workflow_started_at, d.created_at)`

/** What the workflow of delivery `t` is named by, with its event `e` and its webhook `w`. */
const LABEL = `t.id AS "deliveryId", t.organisation_id AS "organisationId", t.webhook_id AS "webhookId",
            e.key AS "eventKey", w.url`

/** Of a webhook at least so many are found, if there are and it has room for them: no more are read of each of many. */
const MIN_PER_WEBHOOK = 20

/**
 * CTEs that find the rows that are due for the sweeper: `found`, in turn by webhook, of each those that are due longest.
 * `room`: SQL for how many of webhook `hook`.
 */
function dueSql(which: string, room: string): string {
  return `RECURSIVE hook AS (
       (SELECT d.webhook_id AS id FROM delivery d WHERE ${which} ORDER BY d.webhook_id LIMIT 1)
       UNION ALL
       SELECT (SELECT d.webhook_id FROM delivery d WHERE ${which} AND d.webhook_id > hook.id
                ORDER BY d.webhook_id LIMIT 1)
         FROM hook WHERE hook.id IS NOT NULL
     ), due AS (
       SELECT oldest.*, row_number() OVER (PARTITION BY hook.id ORDER BY oldest.sweep_at) AS place
         FROM hook CROSS JOIN LATERAL (
           SELECT d.* FROM delivery d
            WHERE ${which} AND d.webhook_id = hook.id AND d.sweep_at < delivery_now()
            ORDER BY d.sweep_at
            LIMIT least(${room}, greatest(${MIN_PER_WEBHOOK}, 2 * :limit::bigint / (SELECT greatest(1, count(id)) FROM hook)))
         ) oldest
     ), found AS (
       SELECT * FROM due ORDER BY place, sweep_at LIMIT :limit::bigint
     )`
}

/** A delivery without a workflow that any process may take up. `attempts` > 0: its first attempt failed without one. */
export type UnstartedDelivery = DeliveryLabel & {
  attempts: number
  nextAttemptAt: Date | null
  sweepAt: Date
}

/**
 * Finds up to `limit` deliveries without a workflow that are due for the sweeper, in turn by webhook: of each as many as
 * it has room, `defaultRoom` where it is not listed. Takes nothing.
 */
export function findUnstarted(
  db: Db,
  options: { limit: number; defaultRoom: number; rooms: readonly { webhookId: string; room: number }[] },
): Promise<UnstartedDelivery[]> {
  const { limit, defaultRoom, rooms } = options
  const room = `coalesce((SELECT given.room FROM unnest(:webhookIds::uuid[], :rooms::int[]) AS given (id, room)
                            WHERE given.id = hook.id), :defaultRoom::int)`
  return sql(
    `WITH ${dueSql(UNSTARTED, room)}
     SELECT ${LABEL}, t.attempts, t.next_attempt_at AS "nextAttemptAt", t.sweep_at AS "sweepAt"
       FROM found t JOIN event e ON e.id = t.event_id JOIN webhook w ON w.id = t.webhook_id
      ORDER BY t.place, t.sweep_at`,
    {
      limit,
      defaultRoom,
      webhookIds: rooms.map(({ webhookId }) => webhookId),
      rooms: rooms.map(({ room }) => room),
    },
  ).rows(db)
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
  return sql(
    `WITH ${dueSql(STARTED, ':limit::bigint')}
     SELECT ${LABEL}, t.attempts, t.next_attempt_at AS "nextAttemptAt", t.sweep_at AS "sweepAt", t.state,
            t.retry_requested AS "retryRequested", t.paused_since AS "pausedSince",
            greatest(0, extract(epoch FROM delivery_now() - ${DUE_AT.replaceAll('d.', 't.')}) * 1000)::float8 AS "lateMs"
       FROM found t JOIN event e ON e.id = t.event_id JOIN webhook w ON w.id = t.webhook_id
      ORDER BY t.place, t.sweep_at`,
    { limit },
  ).rows(db)
}

/** A final delivery whose workflow waits and is owed a signal. */
export type OwedSignal = { deliveryId: string; sweepAt: Date }

/** Finds final deliveries whose workflow is owed a signal, those first that have waited longest. */
export function findOwedSignals(db: Db, limit: number): Promise<OwedSignal[]> {
  return sql(
    `SELECT id AS "deliveryId", sweep_at AS "sweepAt" FROM delivery
      WHERE completed_at IS NOT NULL AND sweep_at IS NOT NULL AND workflow_started_at IS NOT NULL
        AND sweep_at < delivery_now()
      ORDER BY sweep_at LIMIT :limit`,
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
    `SELECT ${LABEL}, t.state, t.attempts, a.failure_code AS "failureCode", a.status_code AS "statusCode",
            a.started_at AS "attemptedAt", t.sweep_at AS "sweepAt"
       FROM (SELECT * FROM delivery d WHERE ${IS_OWED_WORKFLOW} AND d.sweep_at < delivery_now()
              ORDER BY d.sweep_at LIMIT :limit) t
       JOIN event e ON e.id = t.event_id
       JOIN webhook w ON w.id = t.webhook_id
       LEFT JOIN attempt a ON a.delivery_id = t.id AND a.number = t.attempts
      ORDER BY t.sweep_at`,
    { limit },
  ).rows(db)
}

/** How many deliveries are owed a workflow, and since when; null where none is. */
export function findOwed(db: Db): Promise<{ count: number; since: Date } | null> {
  return sql(
    `SELECT count(*)::int AS count, min(d.completed_at) AS since FROM delivery d WHERE ${IS_OWED_WORKFLOW}
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
  await sql(`UPDATE incident i SET sweep_at = now()
      WHERE i.closed_at IS NULL
         OR EXISTS (SELECT 1 FROM notification n WHERE n.incident_id = i.id AND n.state IN ('pending', 'sending'))`).rows(
    db,
  )
  await sql(`UPDATE organisation_erasure SET sweep_at = now()`).rows(db)
  await sql(`UPDATE retry_job SET sweep_at = now() WHERE sweep_at > now()`).rows(db)
}
