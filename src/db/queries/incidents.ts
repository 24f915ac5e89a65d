import { In, Raw } from 'typeorm'
import { pageOf, sql, type Db, type Page } from '../connection/db.ts'
import { Incident, Notification } from '../entities/incident.ts'
import { findFailuresOfIncidents, NO_FAILURES, type FailuresRow } from './failures.ts'
import type { IncidentLabel } from '../../domain/workflow-inputs.ts'

/** An incident with what the API shows beside it. */
export type ListedIncident = Pick<Incident, 'id' | 'openedAt' | 'closedAt' | 'exhaustedAt'> & {
  failures: FailuresRow
  notifications: Pick<Notification, keyof Notification>[]
}

/**
 * Returns a page of a webhook's incidents, newest first, each with its failures and its notifications in the order of
 * kind, channel and recipient; recipients by their bytes, so that the order is the same under every collation.
 * `after`: the incident before the page, or null.
 */
export async function listIncidents(
  db: Db,
  organisationId: string,
  webhookId: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<Page<ListedIncident>> {
  const found = await db.getRepository(Incident).find({
    where: {
      organisationId,
      webhookId,
      ...(after !== null && {
        id: Raw(
          (id) =>
            `(opened_at, ${id}) < (SELECT opened_at, id FROM incident WHERE id = :after AND webhook_id = :webhookId)`,
          { after, webhookId },
        ),
      }),
    },
    order: { openedAt: 'DESC', id: 'DESC' },
    take: limit + 1,
  })
  const { page: incidents, last } = pageOf(found, limit)
  const ids = incidents.map(({ id }) => id)
  const failures = await findFailuresOfIncidents(db, organisationId, ids)
  const notifications = await db.getRepository(Notification).findBy({ incidentId: In(ids) })
  const page = incidents.map(({ id, openedAt, closedAt, exhaustedAt }) => ({
    id,
    openedAt,
    closedAt,
    exhaustedAt,
    failures: failures.get(id) ?? NO_FAILURES,
    notifications: notifications
      .filter(({ incidentId }) => incidentId === id)
      .sort(byKindChannelAndRecipient),
  }))
  return { page, last }
}

function byKindChannelAndRecipient(one: Notification, other: Notification): number {
  return (
    one.kind - other.kind ||
    Buffer.compare(Buffer.from(one.channel), Buffer.from(other.channel)) ||
    Buffer.compare(Buffer.from(one.recipient), Buffer.from(other.recipient))
  )
}

// Hand-written: one upsert opens an incident or updates the open one, and one statement closes it if nothing is unresolved.
// What happens to an incident is dated by its statement: `now()` is when the transaction began, before it had the lock.

/** After this time the sweeper sends the signal of a process that died before it did. */
const SIGNAL_SWEEP_DELAY = `interval '5 seconds'`

const LABEL = `incident.organisation_id AS "organisationId", incident.webhook_id AS "webhookId",
  incident.id AS "incidentId", incident.opened_at AS "openedAt",
  (SELECT url FROM webhook WHERE id = incident.webhook_id) AS url`

/**
 * Records a failure in the incident of a webhook: opens one, or updates the one that is open. `isExhausted`: a delivery
 * failed permanently. `incident.id` is that of a new one. The caller holds the lock of the webhook.
 */
export async function openIncident(
  db: Db,
  incident: OfWebhook & { id: string },
  isExhausted = false,
): Promise<IncidentLabel | null> {
  return sql(
    `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, exhausted_at, sweep_at)
     VALUES (:id, :organisationId, :webhookId, statement_timestamp(), CASE WHEN :isExhausted THEN statement_timestamp() END,
             now() + ${SIGNAL_SWEEP_DELAY})
     ON CONFLICT (webhook_id) WHERE closed_at IS NULL DO UPDATE
        SET resting = false, sweep_at = excluded.sweep_at, exhausted_at = coalesce(incident.exhausted_at, excluded.exhausted_at)
     RETURNING ${LABEL}`,
    { ...incident, isExhausted },
  ).first(db)
}

type OfWebhook = { organisationId: string; webhookId: string }

/** Notes that the webhook was switched on again. The caller holds the lock of the webhook, here and below. */
export function resumeIncident(db: Db, of: OfWebhook): Promise<IncidentLabel | null> {
  return changeOpen(db, of, 'resumed_at', 'true')
}

/**
 * Notes the last success of their webhooks in open incidents, before retention deletes it: what failed before it does not
 * count. A success of the last hours is not deleted yet. In the order of ids, so that two of these do not deadlock.
 */
export async function noteLastSuccesses(db: Db): Promise<void> {
  await sql(
    `WITH last AS (
       SELECT incident.id, success.at
         FROM incident CROSS JOIN LATERAL (SELECT max(started_at) AS at FROM attempt
                                            WHERE webhook_id = incident.webhook_id AND outcome = 'succeeded') success
        WHERE closed_at IS NULL AND at > coalesce(resumed_at, '-infinity') AND at < now() - interval '12 hours'
        ORDER BY incident.id FOR NO KEY UPDATE OF incident
     ) UPDATE incident SET resumed_at = greatest(resumed_at, last.at) FROM last WHERE incident.id = last.id`,
  ).rows(db)
}

/** Closes the webhook's open incident if no delivery is unresolved. */
export function closeResolvedIncident(db: Db, of: OfWebhook): Promise<IncidentLabel | null> {
  return changeOpen(db, of, 'closed_at', 'NOT has_unresolved(webhook_id)')
}

/** Closes the open incident of a deleted webhook, whatever is left of its deliveries. */
export function closeOfDeletedWebhook(db: Db, of: OfWebhook): Promise<IncidentLabel | null> {
  return changeOpen(db, of, 'closed_at', 'true')
}

function changeOpen(
  db: Db,
  { organisationId, webhookId }: OfWebhook,
  column: 'resumed_at' | 'closed_at',
  condition: string,
): Promise<IncidentLabel | null> {
  return sql(
    `UPDATE incident SET ${column} = statement_timestamp(), resting = false, sweep_at = now() + ${SIGNAL_SWEEP_DELAY}
      WHERE organisation_id = :organisationId AND webhook_id = :webhookId AND closed_at IS NULL AND ${condition}
     RETURNING ${LABEL}`,
    { organisationId, webhookId },
  ).first(db)
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
    `SELECT ${LABEL} FROM incident WHERE sweep_at < now() AND sweep_at IS NOT NULL AND id <> ALL(:but::uuid[])
      ORDER BY sweep_at LIMIT :limit`,
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
