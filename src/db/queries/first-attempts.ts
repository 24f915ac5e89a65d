// Hand-written: statistics over the partial indexes of what is not final, webhook by webhook.
import { sql, type Db } from '../connection/db.ts'
import { STARTED, UNSTARTED } from './recovery.ts'
import { SWEEP_HORIZON, slowAttemptSql } from './stuck-deliveries.ts'

/** Deliveries of a webhook that wait for their first attempt; `oldestWaitingForFirstAttemptMs`: null where there is none. */
export type WaitingFirstAttempts = {
  waitingForFirstAttempt: number
  oldestWaitingForFirstAttemptMs: number | null
}

/**
 * SQL for `columns` of the pending deliveries `d` of a webhook; `webhookId` is an SQL expression. A pending delivery is
 * always near its sweep.
 */
function pendingSql(webhookId: string, columns: string): string {
  const of = (part: string): string =>
    `SELECT ${columns} FROM delivery d
      WHERE d.webhook_id = ${webhookId} AND ${part} AND d.sweep_at < now() + ${SWEEP_HORIZON} AND d.state = 'pending' AND NOT d.is_test`
  return `${of(UNSTARTED)} UNION ALL ${of(STARTED)}`
}

/** SQL for a lateral join with the {@link WaitingFirstAttempts} of a webhook; `webhookId` is an SQL expression. */
export function waitingFirstAttemptsSql(webhookId: string): string {
  return `LATERAL (
         SELECT count(*)::int AS "waitingForFirstAttempt",
                CASE WHEN count(*) > 0 THEN round(greatest(extract(epoch FROM now() - min(created_at)) * 1000, 0))::float8 END
                  AS "oldestWaitingForFirstAttemptMs"
           FROM (${pendingSql(webhookId, 'd.created_at')}) pending
       )`
}

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
    `SELECT (SELECT count(*)::int FROM (SELECT 1 FROM (${pendingSql('w.id', 'd.id')}) pending WHERE id < :deliveryId
                                       LIMIT ${MAX_COUNTED}) counted) AS before,
            EXISTS (${slowAttemptSql('w.id', 'failed')} UNION ALL ${slowAttemptSql('w.id', 'succeeded')}) AS "isEndpointSlow"
       FROM webhook w WHERE w.organisation_id = :organisationId AND w.id = :webhookId`,
    { organisationId, webhookId, deliveryId },
  ).first<FirstAttemptQueue>(db)
  return found ?? { before: 0, isEndpointSlow: false }
}
