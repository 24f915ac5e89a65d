// Repositories, but for what the sweeper takes, what one statement stops for every webhook, and batches of rows, which are
// chosen, passed over where locked, and deleted in one statement.
import type { EntityManager } from 'typeorm'
import { sql, type Db } from '../connection/db.ts'
import { OrganisationErasure, type ErasedCounts } from '../entities/organisation.ts'
import { IS_OWED_SIGNAL, IS_OWED_WORKFLOW, STARTED, UNSTARTED } from './due-deliveries.ts'
import { deleteUnlocked } from './retention.ts'

export const NOTHING_ERASED: ErasedCounts = {
  events: 0,
  deliveries: 0,
  attempts: 0,
  incidents: 0,
  auditEntries: 0,
}

/** SQL for whether the organisation of a member is being erased. */
export const IS_ERASING = `EXISTS (SELECT 1 FROM organisation_erasure
                           WHERE organisation_erasure.organisation_id = member.organisation_id)`

/** True where there is such an organisation, and it is not being erased. */
export async function isActiveOrganisation(db: Db, organisationId: string): Promise<boolean> {
  const found = await sql(
    `SELECT 1 FROM organisation WHERE id = :organisationId
        AND NOT EXISTS (SELECT 1 FROM organisation_erasure WHERE organisation_id = :organisationId)`,
    { organisationId },
  ).first(db)
  return found !== null
}

export function isErasing(db: Db, organisationId: string): Promise<boolean> {
  return db.getRepository(OrganisationErasure).existsBy({ organisationId })
}

/** The caller holds the lock of the organisation. The sweeper starts the workflow where the caller did not. */
export async function insertErasure(db: Db, organisationId: string): Promise<void> {
  await db.getRepository(OrganisationErasure).insert({
    organisationId,
    sweepAt: () => `now() + interval '5 seconds'`,
    erased: NOTHING_ERASED,
  })
}

/** Deletes every webhook softly, so that no further attempt is made, and wipes the secrets; returns their ids. */
export function deleteAllWebhooks(db: Db, organisationId: string): Promise<string[]> {
  return sql(
    `UPDATE webhook SET deleted_at = now(), updated_at = now(), enabled = false, secret = NULL
      WHERE id IN (SELECT id FROM webhook WHERE organisation_id = :organisationId AND deleted_at IS NULL
                    ORDER BY id FOR NO KEY UPDATE)
     RETURNING id`,
    { organisationId },
  ).ids(db)
}

/** Locks the erasure until the transaction ends, so that no two of its steps overlap; null when it is done. */
export function lockErasure(
  manager: EntityManager,
  organisationId: string,
): Promise<OrganisationErasure | null> {
  const lock = { mode: 'pessimistic_write' } as const
  return manager.getRepository(OrganisationErasure).findOne({ where: { organisationId }, lock })
}

/** Adds to the counts of a locked erasure. */
export async function addErased(
  manager: EntityManager,
  { organisationId, erased }: OrganisationErasure,
  more: Partial<ErasedCounts>,
): Promise<void> {
  const sum = { ...erased }
  for (const name of Object.keys(sum) as (keyof ErasedCounts)[]) sum[name] += more[name] ?? 0
  await manager.getRepository(OrganisationErasure).update({ organisationId }, { erased: sum })
}

/** Takes erasures whose workflow may not run, for a while. */
export async function takeErasuresForSweep(db: Db, limit: number): Promise<{ organisationId: string }[]> {
  return sql(
    `WITH due AS (
       SELECT organisation_id FROM organisation_erasure WHERE sweep_at < now()
        ORDER BY sweep_at LIMIT :limit FOR UPDATE SKIP LOCKED
     )
     UPDATE organisation_erasure SET sweep_at = now() + interval '15 seconds'
       FROM due WHERE organisation_erasure.organisation_id = due.organisation_id
     RETURNING organisation_erasure.organisation_id AS "organisationId"`,
    { limit },
  ).rows(db)
}

/**
 * Every webhook that the organisation ever had; none where it is not being erased: it may be gone, and another one of the
 * same id be there by now.
 */
export function findAllWebhookIds(db: Db, organisationId: string): Promise<string[]> {
  return sql(
    `SELECT webhook.id FROM webhook JOIN organisation_erasure USING (organisation_id)
      WHERE organisation_id = :organisationId`,
    { organisationId },
  ).ids(db)
}

/** Up to `limit` incidents of these webhooks, those first that may have a workflow. */
export function findIncidentsOf(
  db: Db,
  webhookIds: string[],
  limit: number,
): Promise<{ id: string; webhookId: string; hasWorkflow: boolean }[]> {
  return sql(
    `SELECT id, webhook_id AS "webhookId", closed_at IS NULL OR sweep_at IS NOT NULL AS "hasWorkflow"
       FROM incident WHERE webhook_id = ANY(:webhookIds::uuid[]) ORDER BY "hasWorkflow" DESC LIMIT :limit`,
    { webhookIds, limit },
  ).rows(db)
}

/** Deletes incidents with their notifications; returns how many. */
export async function deleteIncidents(db: Db, ids: string[]): Promise<number> {
  const deleted = await sql(`DELETE FROM incident WHERE id = ANY(:ids::uuid[]) RETURNING id`, { ids }).rows(
    db,
  )
  return deleted.length
}

/** Marks a delivery whose workflow has to be ended: no sweeper takes it before, and none is left unmarked by a crash. */
const ENDING = `interval '10 minutes'`

/**
 * Stops up to `limit` deliveries of webhooks that have, or may have, a workflow; returns their ids. An attempt under way
 * finishes first: its row is passed over while it is leased. Each part has a partial index: no other delivery is read.
 */
export function stopForErasure(db: Db, webhookIds: string[], limit: number): Promise<string[]> {
  const parts = [UNSTARTED, STARTED, IS_OWED_SIGNAL, IS_OWED_WORKFLOW].map(
    (which, part) => `
       SELECT id FROM (
         SELECT id FROM delivery
          WHERE webhook_id = ANY(:webhookIds::uuid[]) AND ${which}
            AND (state <> 'in_progress' OR lease_until < delivery_now())
            FOR UPDATE SKIP LOCKED) AS part_${part}`,
  )
  return sql(
    `WITH chosen AS MATERIALIZED (${parts.join(' UNION ALL ')}
        LIMIT :limit
     )
     UPDATE delivery
        SET state = 'stopped', stop_reason = 'webhook_deleted', next_attempt_at = NULL, retry_requested = false,
            attempt_requested = false, paused_since = NULL, runs = 0, owner = NULL, lease_until = NULL,
            completed_at = coalesce(completed_at, delivery_now()), sweep_at = delivery_now() + ${ENDING}
       FROM chosen WHERE delivery.id = chosen.id
     RETURNING delivery.id`,
    { webhookIds, limit },
  ).ids(db)
}

/** Notes that the workflows of stopped deliveries were ended. */
export async function settleErased(db: Db, ids: string[]): Promise<void> {
  await sql(
    `UPDATE delivery SET sweep_at = NULL WHERE id = ANY(:ids::uuid[]) AND completed_at IS NOT NULL RETURNING id`,
    { ids },
  ).rows(db)
}

/** Deletes deliveries with their attempts; returns how many of each. */
export async function deleteDeliveries(
  db: Db,
  ids: string[],
): Promise<{ deliveries: number; attempts: number }> {
  const attempts = await sql(
    `WITH gone AS (DELETE FROM attempt WHERE delivery_id = ANY(:ids::uuid[]) RETURNING 1)
     SELECT count(*)::int AS count FROM gone`,
    { ids },
  ).one<{ count: number }>(db)
  const deleted = await sql(`DELETE FROM delivery WHERE id = ANY(:ids::uuid[]) RETURNING id`, { ids }).rows(
    db,
  )
  return { deliveries: deleted.length, attempts: attempts.count }
}

/** Locks up to `limit` deliveries that are final and have no workflow to end, along an index: none is read twice. */
export function lockFinalDeliveries(db: Db, webhookIds: string[], limit: number): Promise<string[]> {
  return sql(
    `SELECT id FROM delivery
      WHERE webhook_id = ANY(:webhookIds::uuid[]) AND state IN ('completed', 'failed', 'stopped')
        AND sweep_at IS NULL
      ORDER BY webhook_id, id LIMIT :limit FOR UPDATE SKIP LOCKED`,
    { webhookIds, limit },
  ).ids(db)
}

/**
 * Deletes up to `limit` rows of the organisation from a table, and passes over locked ones; returns how many. Of events
 * the oldest are read, and those deleted that have no delivery: the others wait for theirs to go. A trigger
 * allows it for audit entries during an erasure only.
 */
export function deleteRowsOf(
  db: Db,
  table: 'event' | 'audit_entry' | 'idempotency_key',
  organisationId: string,
  limit: number,
): Promise<number> {
  const which =
    table === 'event'
      ? `id = ANY(ARRAY(SELECT id FROM event WHERE organisation_id = :organisationId ORDER BY sequence LIMIT :limit))
         AND NOT EXISTS (SELECT 1 FROM delivery WHERE event_id = event.id)`
      : `organisation_id = :organisationId`
  return deleteUnlocked(db, table, which, { organisationId, limit })
}

/**
 * Deletes what is left of an organisation whose deliveries and events are gone: webhooks, retry jobs, members with their
 * keys, sessions and subscriptions, and the organisation with its erasure. Returns false, and deletes nothing, while a
 * delivery or an event is left, or the erasure is younger than `minAgeMs`: requests that began before it may still write.
 */
export async function deleteOrganisation(db: Db, organisationId: string, minAgeMs: number): Promise<boolean> {
  const ready = await sql(
    `SELECT 1 FROM organisation_erasure
      WHERE organisation_id = :organisationId AND requested_at <= now() - :minAgeMs * interval '1 ms'
        AND NOT EXISTS (SELECT 1 FROM event WHERE organisation_id = :organisationId)
        AND NOT EXISTS (SELECT 1 FROM audit_entry WHERE organisation_id = :organisationId)
        AND NOT EXISTS (SELECT 1 FROM idempotency_key WHERE organisation_id = :organisationId)`,
    { organisationId, minAgeMs },
  ).first(db)
  if (ready === null) return false
  for (const table of ['retry_job', 'webhook', 'member', 'event_horizon'])
    await sql(`DELETE FROM ${table} WHERE organisation_id = :organisationId`, { organisationId }).rows(db)
  await sql(`DELETE FROM organisation WHERE id = :organisationId`, { organisationId }).rows(db)
  return true
}
