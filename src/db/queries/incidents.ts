import type { IncidentLabel } from '../../domain/workflow-labels.ts'
import { firstRow, rows, type Db } from '../db.ts'

/** An open incident, locked until the transaction ends. `resting`: its workflow waits for the next failure. */
export type LockedIncident = { id: string; resting: boolean; exhausted: boolean }

/** After that time the sweep repeats what a process that died could not tell the workflow any more. */
const TELL_AGAIN_AFTER = `interval '5 seconds'`

const LABEL = `i.organisation_id AS "organisationId", i.webhook_id AS "webhookId", i.id AS "incidentId",
  (SELECT w.url FROM webhook w WHERE w.id = i.webhook_id) AS url, i.opened_at AS "openedAt"`

/**
 * What makes delivery `d` unresolved: it failed at least once, and it is neither delivered nor stopped. While its webhook
 * has one, an open incident stays open.
 */
export const UNRESOLVED = `d.state IN ('waiting', 'failed', 'in_progress') AND d.attempts > 0`

/**
 * Stands in line for a webhook's incident until the transaction ends: to be called before any row of it is locked.
 * Row locks alone are not fair: while failures keep coming that share one, whoever wants it alone would never get it.
 */
export async function queueForIncident(
  db: Db,
  webhookId: string,
  lock: 'shared' | 'exclusive',
): Promise<void> {
  const take = lock === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock'
  await rows(db, `SELECT ${take}(hashtextextended($1, 0))`, [webhookId])
}

/**
 * The webhook's open incident, locked: `shared` by those who record a failure in it, so that they do not wait for each
 * other, or for whoever may change or close it. A statement of its own: what is counted after it was committed before.
 */
export async function lockOpenIncident(
  db: Db,
  webhookId: string,
  lock: 'shared' | 'exclusive',
): Promise<LockedIncident | null> {
  return firstRow(
    db,
    `SELECT id, resting, exhausted_at IS NOT NULL AS exhausted FROM incident
      WHERE webhook_id = $1 AND closed_at IS NULL FOR ${lock === 'shared' ? 'SHARE' : 'NO KEY UPDATE'}`,
    [webhookId],
  )
}

/** Opens an incident; null when another transaction has just opened one. */
export async function openIncident(
  db: Db,
  incident: { id: string; organisationId: string; webhookId: string },
): Promise<LockedIncident | null> {
  return firstRow(
    db,
    `INSERT INTO incident (id, organisation_id, webhook_id, sweep_at) VALUES ($1, $2, $3, now() + ${TELL_AGAIN_AFTER})
     ON CONFLICT (webhook_id) WHERE closed_at IS NULL DO NOTHING RETURNING id, false AS resting, false AS exhausted`,
    [incident.id, incident.organisationId, incident.webhookId],
  )
}

/** Notes a failure that the workflow has to be told of. The caller holds the exclusive lock. */
export async function noteFailure(db: Db, incidentId: string, exhausted: boolean): Promise<void> {
  await rows(
    db,
    `UPDATE incident SET resting = false, sweep_at = now() + ${TELL_AGAIN_AFTER},
            exhausted_at = CASE WHEN $2 THEN coalesce(exhausted_at, now()) ELSE exhausted_at END
      WHERE id = $1`,
    [incidentId, exhausted],
  )
}

/** Has the workflow of a webhook's open incident look, since the webhook is switched on again. */
export async function resumeIncident(db: Db, webhookId: string): Promise<IncidentLabel | null> {
  return firstRow(
    db,
    `UPDATE incident i SET resumed_at = now(), resting = false, sweep_at = now() + ${TELL_AGAIN_AFTER}
      WHERE i.webhook_id = $1 AND i.closed_at IS NULL RETURNING ${LABEL}`,
    [webhookId],
  )
}

/** Closes the incident if its webhook has no unresolved delivery left. The caller holds its exclusive lock. */
export async function closeIncidentIfResolved(db: Db, incidentId: string): Promise<IncidentLabel | null> {
  return firstRow(
    db,
    `UPDATE incident i SET closed_at = now(), resting = false, sweep_at = now() + ${TELL_AGAIN_AFTER}
      WHERE i.id = $1 AND i.closed_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = i.webhook_id AND ${UNRESOLVED})
      RETURNING ${LABEL}`,
    [incidentId],
  )
}

/** Closes a deleted webhook's incident, whatever is left of its deliveries. The caller has locked the webhook. */
export async function closeForGood(db: Db, webhookId: string): Promise<IncidentLabel | null> {
  return firstRow(
    db,
    `UPDATE incident i SET closed_at = now(), resting = false, sweep_at = now() + ${TELL_AGAIN_AFTER}
      WHERE i.webhook_id = $1 AND i.closed_at IS NULL RETURNING ${LABEL}`,
    [webhookId],
  )
}

export async function hasOpenIncident(db: Db, webhookId: string): Promise<boolean> {
  const found = await firstRow(db, `SELECT 1 FROM incident WHERE webhook_id = $1 AND closed_at IS NULL`, [
    webhookId,
  ])
  return found !== null
}

export async function findIncidentLabel(
  db: Db,
  incidentId: string,
): Promise<(IncidentLabel & { resumedAt: Date | null }) | null> {
  return firstRow(db, `SELECT ${LABEL}, i.resumed_at AS "resumedAt" FROM incident i WHERE i.id = $1`, [
    incidentId,
  ])
}

/**
 * Incidents whose workflow may not have been told of a change, or may be gone. Nothing is locked: while failures keep
 * coming, they hold the row all the time. The look that follows settles it. `but`: those that were told lately.
 */
export async function findIncidentsToTell(
  db: Db,
  limit: number,
  but: readonly string[] = [],
): Promise<IncidentLabel[]> {
  return rows(
    db,
    `SELECT ${LABEL} FROM incident i WHERE i.sweep_at < now() AND i.sweep_at IS NOT NULL AND i.id <> ALL($2::uuid[])
      ORDER BY i.sweep_at LIMIT $1`,
    [limit, but],
  )
}
