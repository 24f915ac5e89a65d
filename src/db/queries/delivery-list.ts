// Hand-written: a page is read along an index, and a search ends after a bounded number of rows.
import type { DeliveryFilter } from '../../domain/delivery-filter.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { parseUuid } from '../../ids.ts'
import { sql, type Db } from '../connection/db.ts'
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
 * `searchedUntil`: when the oldest row was created that the search looked at, where it ended before the page was full.
 */
export type SearchedPage<Row> = { page: Row[]; last: string | null; searchedUntil: Date | null }

/** States with an index of their own: only their rows are looked at. No index has both kinds of stopped ones. */
const INDEXED: Partial<Record<DeliveryState, readonly string[]>> = {
  waiting: [`d.state = 'waiting'`],
  failed: [`d.state = 'failed'`],
  stopped: [`d.state = 'stopped' AND NOT d.is_test`, `d.state = 'stopped' AND d.is_test`],
}

/** Of a trace with more events than this, a search finds the deliveries of the newest ones. */
const MAX_EVENTS_OF_TRACE = 1_000

/** Arrays and OFFSET, since PostgreSQL may read whole tables or indexes for a join or an order. */
const FOUND = `(SELECT * FROM delivery WHERE id = ANY (ARRAY(
  SELECT id FROM delivery WHERE id = :searchedId::uuid
   UNION SELECT id FROM delivery WHERE event_id = ANY (:searchedId::uuid || ARRAY(
           SELECT id FROM event WHERE organisation_id = :organisationId AND trace_id = :search
            ORDER BY sequence DESC LIMIT ${MAX_EVENTS_OF_TRACE})))) OFFSET 0)`

/**
 * A webhook's deliveries, newest first. Ids are given in the order of time, so that what is published meanwhile never
 * moves a page that begins after a known id. The statement looks at {@link MAX_SCANNED} rows at most.
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
  }).rows<(DeliveryRow | NoRow) & Mark>(db)
  return searchedPage(found, limit)
}

/** The row at which a search gave up: null where it reached the end, or the page is full. */
export type Mark = { markId: string | null; markAt: Date | null }

/** In the place of the rows where a search found none. */
export type NoRow = { id: null }

function listSql(table: string, conditions: readonly string[]): string {
  const looked = conditions.map(
    (condition) => `(SELECT * FROM ${table} d
      WHERE d.organisation_id = :organisationId AND d.webhook_id = ANY (ARRAY[:webhookId::uuid])
        AND d.id >= :from::uuid AND d.id < :before::uuid
        AND ${condition}
      ORDER BY d.webhook_id DESC, d.id DESC LIMIT :maxScanned)`,
  )
  return `WITH looked AS MATERIALIZED (
      SELECT * FROM (${looked.join(' UNION ALL ')}) d ORDER BY d.webhook_id DESC, d.id DESC LIMIT :maxScanned
    ), fitting AS MATERIALIZED (
      SELECT * FROM looked d WHERE ${FITS_FILTER} ORDER BY d.webhook_id DESC, d.id DESC LIMIT :limit
    ), mark AS (
      SELECT id, created_at FROM looked WHERE (SELECT count(*) FROM fitting) < :limit
       ORDER BY webhook_id DESC, id DESC OFFSET :maxScanned - 1 LIMIT 1
    )
    SELECT shown.*, mark.id AS "markId", mark.created_at AS "markAt"
      FROM (VALUES (true)) one
      LEFT JOIN mark ON true
      LEFT JOIN (SELECT ${DELIVERY_COLUMNS} FROM fitting d JOIN event e ON e.id = d.event_id) shown ON true
     ORDER BY shown.id DESC`
}

/** Makes a page of up to `limit` rows of a search, which gave `limit + 1` where another page follows. */
export function searchedPage<Row extends { id: string }>(
  found: readonly ((Row | NoRow) & Mark)[],
  limit: number,
): SearchedPage<Row> {
  const { markId = null, markAt = null } = found[0] ?? {}
  const rows = found.filter((row): row is Row & Mark => row.id !== null)
  const page = rows.slice(0, limit)
  if (rows.length > limit) return { page, last: page.at(-1)?.id ?? null, searchedUntil: null }
  return { page, last: markId, searchedUntil: markAt }
}
