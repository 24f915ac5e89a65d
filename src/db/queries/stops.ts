// Hand-written: rows are chosen, locked, checked and changed in one statement.
import { EntityManager } from 'typeorm'
import type { DeliverySelection } from '../../domain/delivery-filter.ts'
import type { StopReason } from '../../domain/delivery-state.ts'
import { allowLongerStatements } from '../longer-statements.ts'
import { sql, type Db } from '../db.ts'
import { IS_SELECTED, selectionParameters } from './delivery-selection.ts'
import { isCoveredSql } from './webhooks.ts'

/**
 * Stops every delivery of a webhook that has not been attempted or waits for a retry; the caller holds the lock of
 * the webhook. The sweeper signals their workflows. An attempt under way finishes first. Returns how many.
 */
export function stopDeliveries(
  db: Db,
  organisationId: string,
  webhookId: string,
  reason: StopReason,
): Promise<number> {
  return stopAll(db, organisationId, webhookId, { which: `state IN ('pending', 'waiting')`, reason })
}

/**
 * Stops those of them whose event key the webhook, as it is now, is not subscribed to. The caller has just narrowed the
 * subscription in this transaction. Returns how many.
 */
export function stopUncoveredDeliveries(db: Db, organisationId: string, webhookId: string): Promise<number> {
  const which = `state IN ('pending', 'waiting') AND NOT ${isCoveredSql('d')}`
  return stopAll(db, organisationId, webhookId, { which, reason: 'unsubscribed' })
}

/** Stops one waiting or failed delivery at a user's request; null when it is in no such state. */
export async function discardDelivery(
  db: Db,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<{ id: string } | null> {
  return sql(
    `UPDATE delivery SET state = 'stopped', stop_reason = 'discarded', ${STOPPED}
      WHERE organisation_id = :organisationId AND webhook_id = :webhookId AND id = :deliveryId AND state IN ('waiting', 'failed') RETURNING id`,
    { organisationId, webhookId, deliveryId },
  ).first(db)
}

/** Stops the waiting and failed deliveries of a webhook that are selected; returns how many. */
export function discardSelected(
  db: Db,
  organisationId: string,
  webhookId: string,
  selection: DeliverySelection,
): Promise<number> {
  const which = `state IN ('waiting', 'failed') AND ${IS_SELECTED}`
  return stopAll(
    db,
    organisationId,
    webhookId,
    { which, reason: 'discarded' },
    selectionParameters(selection),
  )
}

/** Stops every permanently failed delivery of a webhook; returns how many. */
export function discardFailed(db: Db, organisationId: string, webhookId: string): Promise<number> {
  return stopAll(db, organisationId, webhookId, { which: `state = 'failed'`, reason: 'discarded' })
}

async function stopAll(
  db: Db,
  organisationId: string,
  webhookId: string,
  { which, reason }: { which: string; reason: StopReason },
  parameters: object = {},
): Promise<number> {
  // There may be hundreds of thousands of them.
  if (db instanceof EntityManager) await allowLongerStatements(db)
  const counted = await sql(
    `WITH stopped AS (
       UPDATE delivery d SET state = 'stopped', stop_reason = :reason, ${STOPPED}
        WHERE organisation_id = :organisationId AND webhook_id = :webhookId AND ${which} RETURNING 1
     ) SELECT count(*)::int AS count FROM stopped`,
    { organisationId, webhookId, reason, ...parameters },
  ).first<{ count: number }>(db)
  return counted?.count ?? 0
}

/** A waiting delivery has a workflow that sleeps and has to be signalled; a failed one's has ended. */
const STOPPED = `next_attempt_at = NULL, retry_requested = false, completed_at = now(),
  owner = NULL, lease_until = NULL, paused_since = NULL, sweep_at = CASE WHEN state = 'failed' THEN NULL ELSE now() END`

/**
 * Takes deliveries whose workflow has still to be signalled of their end, for a while: stopped ones, and such as were
 * completed by an attempt that another one had already taken the place of.
 */
export async function takeToSignal(db: Db, limit: number): Promise<{ deliveryId: string }[]> {
  return sql(
    `WITH due AS (
       SELECT id FROM delivery WHERE sweep_at < now() AND ${HAS_TO_BE_SIGNALLED}
        ORDER BY sweep_at LIMIT :limit FOR UPDATE SKIP LOCKED
     )
     UPDATE delivery d SET sweep_at = now() + interval '1 minute' FROM due WHERE d.id = due.id
     RETURNING d.id AS "deliveryId"`,
    { limit },
  ).rows(db)
}

/** As the index has it. A completed delivery without a workflow may be marked for one instead. */
const HAS_TO_BE_SIGNALLED = `sweep_at IS NOT NULL AND (state = 'stopped' OR state = 'completed' AND started_at IS NOT NULL)`

/** Notes that the workflows of these deliveries were signalled, or have ended. */
export async function markSignalled(db: Db, deliveryIds: string[]): Promise<void> {
  await sql(
    `UPDATE delivery SET sweep_at = NULL WHERE id = ANY(:deliveryIds::uuid[]) AND ${HAS_TO_BE_SIGNALLED}`,
    {
      deliveryIds,
    },
  ).rows(db)
}
