// Hand-written: a page is read along an index, and a search ends after a bounded number of rows.
import type { DeliveryFilter } from '../../domain/delivery-filter.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { parseUuid } from '../../ids.ts'
import { pageOf, sql, type Db, type Page } from '../connection/db.ts'
import { DELIVERY_COLUMNS, type DeliveryRow } from './deliveries.ts'
import { FITS_FILTER, idRangeOf, MAX_SCANNED } from './delivery-selection.ts'

export type DeliveryListFilter = DeliveryFilter & {
  /** Exactly: the id of a delivery or of its event, or a trace id. */
  search: string | null
  /** Only what comes after this delivery in the list. */
  after: string | null
  limit: number
}

/**
 * A page that a bounded search found. `last` is the `after` of the next page, null at the end of the list.
 * `searchedUntil`: when the oldest row was created that the search scanned, where it ended before the page was full.
 */
export type SearchedPage<Row> = Page<Row> & { searchedUntil: Date | null }

/**
 * A row of a search, with the row at which the search gave up: null where it reached the end, or the page is full. Where
 * it found none, there is one row without an id.
 */
export type SearchedRow<Row> = (Row | { id: null }) & { markId: string | null; markAt: Date | null }

/** Makes a page of up to `limit` rows of a search, which gave `limit + 1` where another page follows. */
export function searchedPage<Row extends { id: string }>(
  found: readonly SearchedRow<Row>[],
  limit: number,
): SearchedPage<Row> {
  const { markId = null, markAt = null } = found[0] ?? {}
  const rows = found.filter((row): row is SearchedRow<Row> & Row => row.id !== null)
  const { page, last } = pageOf<Row>(rows, limit)
  return last === null ? { page, last: markId, searchedUntil: markAt } : { page, last, searchedUntil: null }
}

/** States with an index of their own: only their rows are scanned. No index has both kinds of stopped ones. */
const INDEXED: Partial<Record<DeliveryState, readonly string[]>> = {
  waiting: [`state = 'waiting'`],
  failed: [`state = 'failed'`],
  stopped: [`state = 'stopped' AND NOT is_test`, `state = 'stopped' AND is_test`],
}

/** Of a trace with more events than this, a search finds the deliveries of the newest ones. */
const MAX_EVENTS_OF_TRACE = 1_000

/** Arrays and OFFSET, since PostgreSQL may read whole tables or indexes for a join or an order. */
const FOUND = `(SELECT * FROM delivery WHERE id = ANY (ARRAY(
  SELECT id FROM delivery WHERE id = :searchedId::uuid
   UNION (
  SELECT id FROM (
    SELECT id, webhook_id FROM delivery WHERE event_id = ANY (:searchedId::uuid || ARRAY(
             SELECT id FROM event WHERE organisation_id = :organisationId AND trace_id = :search
              ORDER BY sequence DESC LIMIT ${MAX_EVENTS_OF_TRACE})) OFFSET 0) of_events
   WHERE webhook_id = :webhookId AND id >= :from::uuid AND id < :before::uuid
   ORDER BY id DESC LIMIT :maxScanned))) OFFSET 0)`

/**
 * A webhook's deliveries, newest first. Ids are given in the order of time, so that what is published meanwhile never
 * moves a page that begins after a known id. The statement scans {@link MAX_SCANNED} rows at most.
 *
 * The webhook is named as a list and in the order: with a plain equality PostgreSQL may walk the newest deliveries of
 * all webhooks instead of this one's index, without end where this one has been silent for long.
 */
export async function listDeliveries(
  db: Db,
  organisationId: string,
  webhookId: string,
  { search, after, limit, ...filter }: DeliveryListFilter,
): Promise<SearchedPage<DeliveryRow>> {
  const { from, before } = idRangeOf(filter)
  const table = search === null ? 'delivery' : FOUND
  const indexed = search === null && filter.state !== null ? INDEXED[filter.state] : undefined
  const searched = search === null ? {} : { search, searchedId: parseUuid(search) }
  const found = await sql(listSql(table, indexed ?? ['true']), {
    organisationId,
    webhookId,
    from,
    before: after === null || after > before ? before : after,
    ...filter,
    ...searched,
    limit: limit + 1,
    maxScanned: MAX_SCANNED,
  }).rows<SearchedRow<DeliveryRow>>(db)
  return searchedPage(found, limit)
}

function listSql(table: string, conditions: readonly string[]): string {
  const scanned = conditions.map(
    (condition) => `(SELECT * FROM ${table} delivery
      WHERE organisation_id = :organisationId AND webhook_id = ANY (ARRAY[:webhookId::uuid])
        AND id >= :from::uuid AND id < :before::uuid AND ${condition}
      ORDER BY webhook_id DESC, id DESC LIMIT :maxScanned)`,
  )
  return `WITH scanned AS MATERIALIZED (
      SELECT * FROM (${scanned.join(' UNION ALL ')}) parts ORDER BY webhook_id DESC, id DESC LIMIT :maxScanned
    ), fitting AS MATERIALIZED (
      SELECT * FROM scanned AS delivery WHERE ${FITS_FILTER} ORDER BY webhook_id DESC, id DESC LIMIT :limit
    ), mark AS (
      SELECT id, created_at FROM scanned WHERE (SELECT count(*) FROM fitting) < :limit
       ORDER BY webhook_id DESC, id DESC OFFSET :maxScanned - 1 LIMIT 1
    )
    SELECT shown.*, mark.id AS "markId", mark.created_at AS "markAt"
      FROM (VALUES (true)) one
      LEFT JOIN mark ON true
      LEFT JOIN (SELECT ${DELIVERY_COLUMNS} FROM fitting AS delivery JOIN event ON event.id = delivery.event_id) shown ON true
     ORDER BY shown.id DESC`
}

type RecentDeliveryFilter = { state: DeliveryState | null; eventKey: string | null; limit: number }

/** Of each webhook so many deliveries are scanned. */
export const MAX_RECENT = 50

/**
 * Returns the newest deliveries of all webhooks of the organisation that are not deleted, newest first, among the newest
 * {@link MAX_RECENT} of each webhook.
 */
export async function listRecentDeliveries(
  db: Db,
  organisationId: string,
  { state, eventKey, limit }: RecentDeliveryFilter,
): Promise<DeliveryRow[]> {
  return sql(
    `WITH scanned AS MATERIALIZED (
       SELECT newest.* FROM webhook CROSS JOIN LATERAL (
         SELECT * FROM delivery
          WHERE organisation_id = :organisationId AND webhook_id = ANY (ARRAY[webhook.id])
          ORDER BY webhook_id DESC, id DESC LIMIT ${MAX_RECENT}
       ) newest
        WHERE webhook.organisation_id = :organisationId AND webhook.deleted_at IS NULL
     ), fitting AS MATERIALIZED (
       SELECT * FROM scanned
        WHERE (:state::text IS NULL OR state = :state)
          AND (:eventKey::text IS NULL OR (SELECT key FROM event WHERE id = scanned.event_id) = :eventKey)
        ORDER BY id DESC LIMIT :limit
     )
     SELECT ${DELIVERY_COLUMNS} FROM fitting AS delivery JOIN event ON event.id = delivery.event_id
      ORDER BY delivery.id DESC`,
    { organisationId, state, eventKey, limit },
  ).rows(db)
}
