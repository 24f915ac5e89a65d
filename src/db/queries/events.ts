// Hand-written: a page is read in the order of publication, a search ends after a bounded number of rows, and an erasure
// takes three statements.
import { instantOfId, parseUuid } from '../../ids.ts'
import { sql, type Db } from '../connection/db.ts'
import type { Event } from '../entities/event.ts'
import { PAYLOAD_COLUMNS, type StoredPayload } from './deliveries.ts'
import { searchedPage, type SearchedPage, type SearchedRow } from './delivery-list.ts'
import { MAX_SCANNED } from './delivery-selection.ts'

export type EventRow = Pick<Event, 'id' | 'traceId' | 'createdAt'> & { eventKey: string } & StoredPayload

export async function findEvent(db: Db, organisationId: string, id: string): Promise<EventRow | null> {
  return sql(
    `SELECT id, key AS "eventKey", trace_id AS "traceId", created_at AS "createdAt", ${PAYLOAD_COLUMNS} FROM event
      WHERE organisation_id = :organisationId AND id = :id`,
    { organisationId, id },
  ).first(db)
}

type OneEvent = { organisationId: string; eventId: string }

/** Erases the payload. Returns the key of the event; null where there is no such event, or no payload any more. */
export async function eraseBody(db: Db, of: OneEvent & { by: string }): Promise<string | null> {
  const erased = await sql(
    `UPDATE event SET body = NULL, erased_at = now(), erased_by = :by
      WHERE organisation_id = :organisationId AND id = :eventId AND body IS NOT NULL RETURNING key`,
    of,
  ).first<{ key: string }>(db)
  return erased?.key ?? null
}

/** Erases what endpoints answered to the event. */
export async function eraseAnswers(db: Db, of: OneEvent): Promise<void> {
  await sql(
    `UPDATE attempt SET response_headers = NULL, response_body = NULL, response_truncated = false
       FROM delivery
      WHERE delivery.organisation_id = :organisationId AND delivery.event_id = :eventId
        AND attempt.delivery_id = delivery.id AND attempt.response_headers IS NOT NULL`,
    of,
  ).rows(db)
}

/** The webhooks with deliveries of the event that are not final. `isUnderWay`: one of them is in progress. */
export function listOpenOfEvent(db: Db, of: OneEvent): Promise<{ webhookId: string; isUnderWay: boolean }[]> {
  return sql(
    `SELECT webhook_id AS "webhookId", bool_or(state = 'in_progress') AS "isUnderWay" FROM delivery
      WHERE organisation_id = :organisationId AND event_id = :eventId AND completed_at IS NULL GROUP BY webhook_id`,
    of,
  ).rows(db)
}

/** An event without its payload, and how its deliveries stand. */
export type EventSummaryRow = Pick<Event, 'id' | 'createdAt' | 'traceId' | 'isTest'> & {
  eventKey: string
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
export const SEQUENCE_DELAY = `interval '1 minute'`

/**
 * The sequence numbers between which all events are that a page may have. Those of all organisations are in one order.
 * Where the event of a cursor is purged, the page begins up to a minute later than that was published.
 */
const BOUNDS = `bounds AS MATERIALIZED (
  SELECT coalesce((SELECT sequence FROM event WHERE created_at < :since::timestamptz - ${SEQUENCE_DELAY}
                    ORDER BY created_at DESC LIMIT 1), 0) AS above,
         least((SELECT sequence FROM event WHERE created_at >= :until::timestamptz + ${SEQUENCE_DELAY}
                 ORDER BY created_at LIMIT 1),
               CASE WHEN :after::uuid IS NULL THEN ${2n ** 63n - 1n}
                    ELSE coalesce(
                      (SELECT sequence FROM event WHERE organisation_id = :organisationId AND id = :after::uuid),
                      (SELECT sequence + 1 FROM event
                        WHERE created_at < to_timestamp(:afterMs::float8 / 1000) + ${SEQUENCE_DELAY}
                        ORDER BY created_at DESC LIMIT 1), 0) END) AS below
)`

/** Each has an index in the order of sequence numbers, or one row. */
const EVERYTHING = ['true']
const FOUND = [`trace_id = :search`, `id = :searchedId::uuid AND trace_id <> :search`]

const COUNTS = `json_build_object('total', count(*),
  'completed', count(*) FILTER (WHERE state = 'completed'), 'waiting', count(*) FILTER (WHERE state = 'waiting'),
  'failed', count(*) FILTER (WHERE state = 'failed'), 'stopped', count(*) FILTER (WHERE state = 'stopped'),
  'pending', count(*) FILTER (WHERE state = 'pending'), 'inProgress', count(*) FILTER (WHERE state = 'in_progress'))`

/**
 * An organisation's events, newest first, without payloads. The statement scans {@link MAX_SCANNED} rows at most.
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
    afterMs: filter.after === null ? null : instantOfId(filter.after),
    limit: limit + 1,
    maxScanned: MAX_SCANNED,
  }).rows<SearchedRow<EventSummaryRow>>(db)
  return searchedPage(found, limit)
}

function listSql(sources: readonly string[]): string {
  const scanned = sources.map(
    (condition) => `(SELECT id, sequence, key, trace_id, is_test, created_at FROM event
      WHERE organisation_id = :organisationId
        AND sequence > (SELECT above FROM bounds) AND sequence < (SELECT below FROM bounds) AND ${condition}
      ORDER BY sequence DESC LIMIT :maxScanned)`,
  )
  return `WITH ${BOUNDS}, scanned AS MATERIALIZED (
      SELECT * FROM (${scanned.join(' UNION ALL ')}) parts ORDER BY sequence DESC LIMIT :maxScanned
    ), fitting AS MATERIALIZED (
      SELECT * FROM scanned
       WHERE (:readableKeys::text[] IS NULL OR key = ANY (:readableKeys)) AND (:eventKey::text IS NULL OR key = :eventKey)
         AND (:since::timestamptz IS NULL OR created_at >= :since)
         AND (:until::timestamptz IS NULL OR created_at < :until)
       ORDER BY sequence DESC LIMIT :limit
    ), mark AS (
      SELECT id, created_at FROM scanned WHERE (SELECT count(*) FROM fitting) < :limit
       ORDER BY sequence DESC OFFSET :maxScanned - 1 LIMIT 1
    )
    SELECT event.id, event.key AS "eventKey", event.created_at AS "createdAt", event.trace_id AS "traceId",
           event.is_test AS "isTest", (SELECT ${COUNTS} FROM delivery WHERE event_id = event.id) AS deliveries,
           mark.id AS "markId", mark.created_at AS "markAt"
      FROM (VALUES (true)) one LEFT JOIN mark ON true LEFT JOIN fitting AS event ON true
     ORDER BY event.sequence DESC`
}
