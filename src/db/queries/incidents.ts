// Hand-written: one upsert opens an incident or updates the open one, and one statement closes it if nothing is unresolved.
import type { IncidentLabel } from '../../domain/workflow-inputs.ts'
import { sql, type Db } from '../connection/db.ts'

// What happens to an incident is dated by its statement: `now()` is when the transaction began, before it had the lock.

/** After this time the sweeper sends the signal of a process that died before it did. */
const SIGNAL_SWEEP_DELAY = `interval '5 seconds'`

const LABEL = `i.organisation_id AS "organisationId", i.webhook_id AS "webhookId", i.id AS "incidentId",
  (SELECT w.url FROM webhook w WHERE w.id = i.webhook_id) AS url, i.opened_at AS "openedAt"`

/**
 * Records a failure in the incident of a webhook: opens one, or updates the one that is open. `isExhausted`: a delivery
 * failed permanently. `incident.id` is that of a new one. The caller holds the lock of the webhook.
 */
export async function openIncident(
  db: Db,
  incident: { id: string; organisationId: string; webhookId: string },
  isExhausted = false,
): Promise<IncidentLabel | null> {
  return sql(
    `INSERT INTO incident AS i (id, organisation_id, webhook_id, opened_at, exhausted_at, sweep_at)
     VALUES (:id, :organisationId, :webhookId, statement_timestamp(), CASE WHEN :isExhausted THEN statement_timestamp() END,
             now() + ${SIGNAL_SWEEP_DELAY})
     ON CONFLICT (webhook_id) WHERE closed_at IS NULL DO UPDATE
        SET resting = false, sweep_at = excluded.sweep_at, exhausted_at = coalesce(i.exhausted_at, excluded.exhausted_at)
     RETURNING ${LABEL}`,
    { ...incident, isExhausted },
  ).first(db)
}

/** Notes that the webhook was switched on again. The caller holds the lock of the webhook, here and below. */
export async function resumeIncident(db: Db, webhookId: string): Promise<IncidentLabel | null> {
  return sql(
    `UPDATE incident i SET resumed_at = statement_timestamp(), resting = false, sweep_at = now() + ${SIGNAL_SWEEP_DELAY}
      WHERE i.webhook_id = :webhookId AND i.closed_at IS NULL RETURNING ${LABEL}`,
    { webhookId },
  ).first(db)
}

/** Closes the webhook's open incident if no delivery is unresolved. */
export async function closeResolvedIncident(db: Db, webhookId: string): Promise<IncidentLabel | null> {
  return closeIncident(db, webhookId, `NOT has_unresolved(i.webhook_id)`)
}

/** Closes the open incident of a deleted webhook, whatever is left of its deliveries. */
export async function closeOfDeletedWebhook(db: Db, webhookId: string): Promise<IncidentLabel | null> {
  return closeIncident(db, webhookId, 'true')
}

function closeIncident(db: Db, webhookId: string, condition: string): Promise<IncidentLabel | null> {
  return sql(
    `UPDATE incident i SET closed_at = statement_timestamp(), resting = false, sweep_at = now() + ${SIGNAL_SWEEP_DELAY}
      WHERE i.webhook_id = :webhookId AND i.closed_at IS NULL AND ${condition} RETURNING ${LABEL}`,
    { webhookId },
  ).first(db)
}

export async function findIncidentLabel(
  db: Db,
  incidentId: string,
): Promise<(IncidentLabel & { resumedAt: Date | null }) | null> {
  return sql(`SELECT ${LABEL}, i.resumed_at AS "resumedAt" FROM incident i WHERE i.id = :incidentId`, {
    incidentId,
  }).first(db)
}

/**
 * Returns incidents whose workflow may not know of a change, or may be gone. Locks nothing: the evaluation that follows
 * a signal updates the row. `but`: those that were signalled lately.
 */
export async function findIncidentsToSignal(
  db: Db,
  limit: number,
  but: readonly string[] = [],
): Promise<IncidentLabel[]> {
  return sql(
    `SELECT ${LABEL} FROM incident i WHERE i.sweep_at < now() AND i.sweep_at IS NOT NULL AND i.id <> ALL(:but::uuid[])
      ORDER BY i.sweep_at LIMIT :limit`,
    { limit, but },
  ).rows(db)
}

/**
 * Sweeps incidents whose signal failed again after `delayMs`, or up to half as long again: others are first by then.
 * Passes over those that are locked, and those that were swept or changed meanwhile.
 */
export async function sweepIncidentsAgain(db: Db, incidentIds: string[], delayMs: number): Promise<void> {
  await sql(
    `UPDATE incident SET sweep_at = now() + :delayMs * (1 + random() / 2) * interval '1 ms'
      WHERE id IN (SELECT id FROM incident WHERE id = ANY(:incidentIds::uuid[]) AND sweep_at < now()
                      FOR NO KEY UPDATE SKIP LOCKED)`,
    { incidentIds, delayMs },
  ).rows(db)
}
