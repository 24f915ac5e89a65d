// Hand-written: the list, retry jobs and discarding share one filter over three tables, and a page of each is read from
// partial indexes in the order of ids.
import {
  EVERY_DELIVERY,
  NO_FILTER,
  type DeliveryFilter,
  type DeliverySelection,
  type RetryMode,
} from '../../domain/delivery-filter.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { firstIdAt } from '../../ids.ts'
import { sql, type Db } from '../connection/db.ts'

/**
 * SQL for whether a delivery fits a {@link DeliveryFilter}, whose members are its parameters. It reads one event and the
 * attempts of the delivery by primary key, and only where the filter asks for them.
 */
export const FITS_FILTER = `(:state::text IS NULL OR delivery.state = :state)
        AND (:since::timestamptz IS NULL OR delivery.created_at >= :since)
        AND (:until::timestamptz IS NULL OR delivery.created_at < :until)
        AND (:eventKey::text IS NULL OR (SELECT key FROM event WHERE id = delivery.event_id) = :eventKey)
        AND (:statusCode::int IS NULL OR
             (SELECT status_code FROM attempt WHERE delivery_id = delivery.id AND number = delivery.attempts) = :statusCode)
        AND (:failureCode::text IS NULL AND :attemptedSince::timestamptz IS NULL AND :attemptedUntil::timestamptz IS NULL
             OR EXISTS (SELECT 1 FROM attempt WHERE delivery_id = delivery.id
                           AND (:failureCode::text IS NULL OR failure_code = :failureCode)
                           AND (:attemptedSince::timestamptz IS NULL OR started_at >= :attemptedSince)
                           AND (:attemptedUntil::timestamptz IS NULL OR started_at < :attemptedUntil)))`

/** SQL for whether a delivery is selected; {@link selectionParameters} gives its parameters. */
export const IS_SELECTED = `(:deliveryIds::uuid[] IS NULL OR delivery.id = ANY (:deliveryIds))
        AND delivery.id >= :from::uuid AND delivery.id < :before::uuid AND ${FITS_FILTER}`

/**
 * SQL for whether the webhook of a delivery, enabled or not, takes it: two reads by primary key for each row. The SQL
 * function `stop_reason_of` states the rule; `isSubscribedTo` states it for a webhook that was read.
 */
export const IS_SUBSCRIBED = `(
  SELECT stop_reason_of(webhook.deleted_at, true, webhook.subscribed_event_keys, event.key, event.body IS NULL) IS NULL
    FROM webhook, event WHERE webhook.id = delivery.webhook_id AND event.id = delivery.event_id)`

export function selectionParameters({ deliveryIds, filter }: DeliverySelection) {
  const conditions = filter ?? NO_FILTER
  return { deliveryIds, ...idRangeOf(conditions), ...conditions }
}

/** The most rows that one statement scans for those that fit a filter. */
export const MAX_SCANNED = 5_000

/** The highest UUID there is; no delivery has it. */
const BEYOND_ALL = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** An id is made at most so long after the beginning of its transaction, which is `created_at`. */
const ID_DELAY_MS = 60_000

/** Returns the ids, `from` inclusive and `before` exclusive, between which all deliveries of the filter's time are. */
export function idRangeOf({
  since,
  until,
  attemptedUntil,
}: Pick<DeliveryFilter, 'since' | 'until' | 'attemptedUntil'>): {
  from: string
  before: string
} {
  // A delivery is created before it is attempted.
  const untilMs = Math.min(until?.getTime() ?? Infinity, attemptedUntil?.getTime() ?? Infinity)
  return {
    from: firstIdAt(since === null ? 0 : since.getTime()),
    before: untilMs === Infinity ? BEYOND_ALL : firstIdAt(untilMs + ID_DELAY_MS),
  }
}

const ENDED_WITHOUT_SUCCESS = 'NOT delivery.is_test AND delivery.attempts > 0'

/**
 * The states that each mode covers, with what else holds of a delivery in it; each is served by an index in the order
 * of ids. `stopped` passes over what a user discarded.
 */
const COVERED: Record<RetryMode, Partial<Record<DeliveryState, string>>> = {
  failed: { failed: 'TRUE' },
  force: { failed: 'TRUE', waiting: 'TRUE' },
  stopped: {
    stopped: `${ENDED_WITHOUT_SUCCESS} AND delivery.stop_reason IN ('webhook_disabled', 'unsubscribed')`,
  },
  undelivered: { failed: 'TRUE', waiting: 'TRUE', stopped: ENDED_WITHOUT_SUCCESS },
}

/** The states that a mode covers. */
export function coveredStates(mode: RetryMode): DeliveryState[] {
  return Object.keys(COVERED[mode]) as DeliveryState[]
}

/** The conditions on the deliveries that a mode covers: each meets one of them. */
export function coveredBy(mode: RetryMode): string[] {
  return Object.entries(COVERED[mode]).map(
    ([state, condition]) => `delivery.state = '${state}' AND ${condition}`,
  )
}

/**
 * SQL for the ids after `:cursor` of those deliveries of a webhook that meet one of the conditions, in order: of each a
 * page from its index, and no more than `:limit`. `further`: what holds for all.
 */
function pageSql(conditions: readonly string[], further: string): string {
  const pages = conditions.map(
    (
      condition,
    ) => `(SELECT id FROM delivery WHERE organisation_id = :organisationId AND webhook_id = :webhookId
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
 * created or ended after the job. It reads {@link MAX_SCANNED} deliveries at most. `last` is the next cursor; null when
 * nothing is left.
 */
export async function listCovered(
  db: Db,
  page: Page & { jobId: string; limit: number },
): Promise<{ ids: string[]; last: string | null }> {
  const { organisationId, webhookId, cursor, jobId, limit, selection = EVERY_DELIVERY } = page
  // Those that are named are found by their ids.
  const upTo = selection.deliveryIds === null ? await lastScanned(db, page) : null
  const isCovered = `(:upTo::uuid IS NULL OR id <= :upTo::uuid) AND ${IS_SELECTED}
        AND coalesce(completed_at, created_at) <= (SELECT created_at FROM retry_job WHERE id = :jobId)
        AND ${IS_SUBSCRIBED}`
  const ids = await sql(`${pageSql(coveredBy(page.mode), isCovered)} LIMIT :limit`, {
    organisationId,
    webhookId,
    cursor,
    upTo,
    jobId,
    limit,
    ...selectionParameters(selection),
  }).ids(db)
  return { ids, last: ids.at(-1) ?? upTo }
}

/** Returns how far one step scans for deliveries that a job covers; null where the rest is within its bound. */
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
              WHEN attempt.outcome IS NOT NULL THEN attempt.outcome
              WHEN delivery.attempts < requested.number AND delivery.completed_at IS NULL THEN 'under_way'
              ELSE 'none' END AS outcome
       FROM unnest(:deliveryIds::uuid[], :numbers::int[]) WITH ORDINALITY AS requested (id, number, place)
       LEFT JOIN delivery ON delivery.id = requested.id AND delivery.organisation_id = :organisationId
       LEFT JOIN attempt ON attempt.delivery_id = delivery.id AND attempt.number = requested.number
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
export function listDiscardable(
  db: Db,
  of: { organisationId: string; webhookId: string },
  which: { states: readonly ('waiting' | 'failed')[]; selection: DeliverySelection; after: string | null },
): Promise<string[]> {
  const { states, selection, after } = which
  const conditions = states.map((state) => `delivery.state = '${state}'`)
  return sql(`${pageSql(conditions, IS_SELECTED)} LIMIT :limit`, {
    ...of,
    cursor: after,
    limit: DISCARD_LIMIT,
    ...selectionParameters(selection),
  }).ids(db)
}
