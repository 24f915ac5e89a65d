// Hand-written: a page of each mode is read from partial indexes in the order of ids.
import { EVERY_DELIVERY, type DeliverySelection, type RetryMode } from '../../domain/delivery-filter.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { sql, type Db } from '../connection/db.ts'
import { IS_SELECTED, MAX_SCANNED, selectionParameters } from './delivery-selection.ts'
import { isSubscribedSql } from './webhooks.ts'

const ENDED_WITHOUT_SUCCESS = 'NOT d.is_test AND d.attempts > 0'

/**
 * The states that each mode covers, with what else holds of a delivery `d` in it; each is served by an index in the
 * order of ids. `stopped` passes over what a user discarded.
 */
const COVERED: Record<RetryMode, Partial<Record<DeliveryState, string>>> = {
  failed: { failed: 'TRUE' },
  force: { failed: 'TRUE', waiting: 'TRUE' },
  stopped: { stopped: `${ENDED_WITHOUT_SUCCESS} AND d.stop_reason IN ('webhook_disabled', 'unsubscribed')` },
  undelivered: { failed: 'TRUE', waiting: 'TRUE', stopped: ENDED_WITHOUT_SUCCESS },
}

/** The states that a mode covers. */
export function coveredStates(mode: RetryMode): DeliveryState[] {
  return Object.keys(COVERED[mode]) as DeliveryState[]
}

/** The conditions on a delivery `d` that a mode covers: it meets one of them. */
export function coveredBy(mode: RetryMode): string[] {
  return Object.entries(COVERED[mode]).map(([state, condition]) => `d.state = '${state}' AND ${condition}`)
}

/**
 * SQL for the ids after `:cursor` of those deliveries of a webhook that meet one of the conditions, in order: of each a
 * page from its index, and no more than `:limit`. `further`: what holds for all.
 */
function pageSql(conditions: readonly string[], further: string): string {
  const pages = conditions.map(
    (
      condition,
    ) => `(SELECT id FROM delivery d WHERE organisation_id = :organisationId AND webhook_id = :webhookId
        AND ${condition} AND (:cursor::uuid IS NULL OR id > :cursor::uuid) AND ${further} ORDER BY id LIMIT :limit)`,
  )
  return `SELECT id FROM (${pages.join(' UNION ALL ')}) page ORDER BY id`
}

type Page = {
  organisationId: string
  webhookId: string
  mode: RetryMode
  selection?: DeliverySelection
  cursor: string | null
}

/**
 * Returns the ids of the next `limit` deliveries of a webhook after `cursor` that a retry job covers, without those
 * created or ended after the job. With a filter it reads {@link MAX_SCANNED} deliveries at most. `last` is the next
 * cursor; null when nothing is left.
 */
export async function listCovered(
  db: Db,
  page: Page & { jobId: string; limit: number },
): Promise<{ ids: string[]; last: string | null }> {
  const { organisationId, webhookId, cursor, jobId, limit, selection = EVERY_DELIVERY } = page
  const upTo = selection.filter === null ? null : await lastScanned(db, page)
  const isCovered = `(:upTo::uuid IS NULL OR id <= :upTo::uuid) AND ${IS_SELECTED}
        AND coalesce(completed_at, created_at) <= (SELECT created_at FROM retry_job WHERE id = :jobId)
        AND ${isSubscribedSql('d')}`
  const found = await sql(`${pageSql(coveredBy(page.mode), isCovered)} LIMIT :limit`, {
    organisationId,
    webhookId,
    cursor,
    upTo,
    jobId,
    limit,
    ...selectionParameters(selection),
  }).rows<{ id: string }>(db)
  const ids = found.map(({ id }) => id)
  return { ids, last: ids.at(-1) ?? upTo }
}

/** Returns how far one step looks for deliveries that fit a filter; null where the rest is within its bound. */
async function lastScanned(db: Db, page: Page): Promise<string | null> {
  const { organisationId, webhookId, mode, selection = EVERY_DELIVERY, cursor } = page
  const { from, before } = selectionParameters(selection)
  const isInRange = 'id >= :from::uuid AND id < :before::uuid'
  const last = await sql(`${pageSql(coveredBy(mode), isInRange)} OFFSET :limit - 1 LIMIT 1`, {
    organisationId,
    webhookId,
    cursor,
    from,
    before,
    limit: MAX_SCANNED,
  }).first<{ id: string }>(db)
  return last?.id ?? null
}

/** The attempt `number` that a retry job requested. */
export type RequestedAttempt = { deliveryId: string; number: number }

/**
 * Returns the outcome of each attempt, in the order given: `none` where the delivery ended without it (stopped, or
 * purged).
 */
export async function findRequestedAttempts(
  db: Db,
  organisationId: string,
  attempts: readonly RequestedAttempt[],
): Promise<(RequestedAttempt & { outcome: 'under_way' | 'succeeded' | 'failed' | 'none' })[]> {
  return sql(
    `SELECT requested.id AS "deliveryId", requested.number, CASE
              WHEN a.outcome IS NOT NULL THEN a.outcome
              WHEN d.attempts < requested.number AND d.completed_at IS NULL THEN 'under_way'
              ELSE 'none' END AS outcome
       FROM unnest(:deliveryIds::uuid[], :numbers::int[]) WITH ORDINALITY AS requested (id, number, place)
       LEFT JOIN delivery d ON d.id = requested.id AND d.organisation_id = :organisationId
       LEFT JOIN attempt a ON a.delivery_id = d.id AND a.number = requested.number
      ORDER BY requested.place`,
    {
      organisationId,
      deliveryIds: attempts.map(({ deliveryId }) => deliveryId),
      numbers: attempts.map(({ number }) => number),
    },
  ).rows(db)
}

/** Ids of one statement that discards. */
const DISCARD_LIMIT = 5_000

/** Returns the ids of the next waiting and failed deliveries of a webhook that are selected. */
export async function listDiscardable(
  db: Db,
  of: { organisationId: string; webhookId: string },
  which: { states: readonly ('waiting' | 'failed')[]; selection: DeliverySelection; after: string | null },
): Promise<string[]> {
  const { states, selection, after } = which
  const conditions = states.map((state) => `state = '${state}'`)
  const found = await sql(`${pageSql(conditions, IS_SELECTED)} LIMIT :limit`, {
    ...of,
    cursor: after,
    limit: DISCARD_LIMIT,
    ...selectionParameters(selection),
  }).rows<{ id: string }>(db)
  return found.map(({ id }) => id)
}
