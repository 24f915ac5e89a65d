// Hand-written: a page is read in the order of publication, and a search ends after a bounded number of rows.
import { parseUuid } from '../../ids.ts'
import { sql, type Db } from '../connection/db.ts'
import { searchedPage, type Mark, type NoRow, type SearchedPage } from './delivery-list.ts'
import { MAX_SCANNED } from './delivery-selection.ts'

/** An event without its payload, and how its deliveries stand. */
export type EventSummaryRow = {
  id: string
  eventKey: string
  createdAt: Date
  traceId: string
  isTest: boolean
  deliveries: Record<
    'total' | 'completed' | 'waiting' | 'failed' | 'stopped' | 'pending' | 'inProgress',
    number
  >
}

/** Filter of a page of events; null filters nothing. */
export type EventListFilter = {
  /** Event keys that the reader may read. */
  readableKeys: readonly string[] | null
  eventKey: string | null
  /** Created then or later. */
  since: Date | null
  /** Created before that. */
  until: Date | null
  /** Exactly: the id of an event, or a trace id. */
  search: string | null
  /** Only what comes after this event in the list. */
  after: string | null
  limit: number
}

/** A sequence number is drawn at most so long after the beginning of its transaction, which is `created_at`. */
const SEQUENCE_DELAY = `interval '1 minute'`

/** The sequence numbers between which all events are that a page may have. Those of all organisations are in one order. */
const BOUNDS = `bounds AS MATERIALIZED (
  SELECT coalesce((SELECT sequence FROM event WHERE created_at < :since::timestamptz - ${SEQUENCE_DELAY}
                    ORDER BY created_at DESC LIMIT 1), 0) AS above,
         least((SELECT sequence FROM event WHERE created_at >= :until::timestamptz + ${SEQUENCE_DELAY}
                 ORDER BY created_at LIMIT 1),
               CASE WHEN :after::uuid IS NULL THEN ${2n ** 63n - 1n}
                    ELSE (SELECT coalesce(max(sequence), 0) FROM event
                           WHERE organisation_id = :organisationId AND id = :after::uuid) END) AS below
)`

/** Each has an index in the order of sequence numbers, or one row. */
const EVERYTHING = ['true']
const FOUND = [`trace_id = :search`, `id = :searchedId::uuid AND trace_id <> :search`]

const COUNTS = `json_build_object('total', count(*),
  'completed', count(*) FILTER (WHERE state = 'completed'), 'waiting', count(*) FILTER (WHERE state = 'waiting'),
  'failed', count(*) FILTER (WHERE state = 'failed'), 'stopped', count(*) FILTER (WHERE state = 'stopped'),
  'pending', count(*) FILTER (WHERE state = 'pending'), 'inProgress', count(*) FILTER (WHERE state = 'in_progress'))`

/**
 * An organisation's events, newest first, without payloads. The statement looks at {@link MAX_SCANNED} rows at most.
 */
export async function listEvents(
  db: Db,
  organisationId: string,
  { search, limit, ...filter }: EventListFilter,
): Promise<SearchedPage<EventSummaryRow>> {
  const searched = search === null ? {} : { search, searchedId: parseUuid(search) }
  const found = await sql(listSql(search === null ? EVERYTHING : FOUND), {
    organisationId,
    ...filter,
    ...searched,
    limit: limit + 1,
    maxScanned: MAX_SCANNED,
  }).rows<(EventSummaryRow | NoRow) & Mark>(db)
  return searchedPage(found, limit)
}

function listSql(sources: readonly string[]): string {
  const looked = sources.map(
    (condition) => `(SELECT id, sequence, key, trace_id, is_test, created_at FROM event
      WHERE organisation_id = :organisationId
        AND sequence > (SELECT above FROM bounds) AND sequence < (SELECT below FROM bounds) AND ${condition}
      ORDER BY sequence DESC LIMIT :maxScanned)`,
  )
  return `WITH ${BOUNDS}, looked AS MATERIALIZED (
      SELECT * FROM (${looked.join(' UNION ALL ')}) e ORDER BY sequence DESC LIMIT :maxScanned
    ), fitting AS MATERIALIZED (
      SELECT * FROM looked
       WHERE (:readableKeys::text[] IS NULL OR key = ANY (:readableKeys)) AND (:eventKey::text IS NULL OR key = :eventKey)
         AND (:since::timestamptz IS NULL OR created_at >= :since)
         AND (:until::timestamptz IS NULL OR created_at < :until)
       ORDER BY sequence DESC LIMIT :limit
    ), mark AS (
      SELECT id, created_at FROM looked WHERE (SELECT count(*) FROM fitting) < :limit
       ORDER BY sequence DESC OFFSET :maxScanned - 1 LIMIT 1
    )
    SELECT e.id, e.key AS "eventKey", e.created_at AS "createdAt", e.trace_id AS "traceId", e.is_test AS "isTest",
           (SELECT ${COUNTS} FROM delivery WHERE event_id = e.id) AS deliveries,
           mark.id AS "markId", mark.created_at AS "markAt"
      FROM (VALUES (true)) one LEFT JOIN mark ON true LEFT JOIN fitting e ON true
     ORDER BY e.sequence DESC`
}
