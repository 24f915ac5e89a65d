// Hand-written: statistics over the partial indexes of what is not final, webhook by webhook.
import { sql, type Db } from '../connection/db.ts'
import { STARTED, UNSTARTED } from './recovery.ts'
import { HAD_SLOW_ATTEMPT, SWEEP_HORIZON } from './stuck-deliveries.ts'

/** Deliveries of a webhook that wait for their first attempt; `oldestWaitingForFirstAttemptMs`: null where there is none. */
export type WaitingFirstAttempts = {
  waitingForFirstAttempt: number
  oldestWaitingForFirstAttemptMs: number | null
}

/**
 * SQL for the deliveries of a webhook that wait for their first attempt: a pending one is always near its sweep.
 */
const PENDING = `(
  SELECT id, created_at FROM delivery
   WHERE webhook_id = webhook.id AND ${UNSTARTED} AND sweep_at < now() + ${SWEEP_HORIZON} AND state = 'pending' AND NOT is_test
   UNION ALL
  SELECT id, created_at FROM delivery
   WHERE webhook_id = webhook.id AND ${STARTED} AND sweep_at < now() + ${SWEEP_HORIZON} AND state = 'pending' AND NOT is_test)`

/** SQL for the {@link WaitingFirstAttempts} of a webhook. */
export const WAITING_FIRST_ATTEMPTS = `(
  SELECT count(*)::int AS "waitingForFirstAttempt",
         CASE WHEN count(*) > 0 THEN round(greatest(extract(epoch FROM now() - min(created_at)) * 1000, 0))::float8 END
           AS "oldestWaitingForFirstAttemptMs"
    FROM ${PENDING} pending)`

/** What a delivery that waits for its first attempt waits for. `isEndpointSlow`: a recent attempt took a second or more. */
export type FirstAttemptQueue = { before: number; isEndpointSlow: boolean }

/** A page requests it every second: a longer queue is not counted to its end. */
const MAX_COUNTED = 10_000

/** Counts the deliveries of the webhook that were accepted before this one and wait for their first attempt like it. */
export async function findFirstAttemptQueue(
  db: Db,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<FirstAttemptQueue> {
  const found = await sql(
    `SELECT (SELECT count(*)::int FROM (SELECT 1 FROM ${PENDING} pending WHERE id < :deliveryId
                                       LIMIT ${MAX_COUNTED}) counted) AS before,
            ${HAD_SLOW_ATTEMPT} AS "isEndpointSlow"
       FROM webhook WHERE organisation_id = :organisationId AND id = :webhookId`,
    { organisationId, webhookId, deliveryId },
  ).first<FirstAttemptQueue>(db)
  return found ?? { before: 0, isEndpointSlow: false }
}
