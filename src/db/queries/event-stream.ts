// Hand-written: reads sequences, locks and pages with their horizon, which are no entities.
import { sql, type Db } from '../connection/db.ts'
import type { Event } from '../entities/event.ts'

/** An event as the stream sends it. `sequence` orders all events of the database; it is never sent. */
export type StreamedEvent = Pick<Event, 'id' | 'organisationId' | 'key' | 'body'> & { sequence: number }

/** As a number: far fewer than 2^53 are ever given. */
const EVENT_COLUMNS = `event.id, event.organisation_id AS "organisationId", event.sequence::float8 AS sequence, event.key,
            event.body, event.created_at > to_timestamp(:atMs / 1000.0) AS "isLater"`

/**
 * A position in the order of all events. `atMs`: a time of PostgreSQL's clock at which every event up to there had been
 * inserted.
 */
export type StreamPosition = { sequence: number; atMs: number }

export type EventRange = { after: number; upTo: StreamPosition }

/** `isLater`: than its range. The database was replaced by an older one, which has given the number again. */
type ReadEvent = StreamedEvent & { isLater: boolean }

const LAST_SEQUENCE = `coalesce(pg_sequence_last_value(pg_get_serial_sequence('event', 'sequence')::regclass), 0)`
/** SQL for an instant in ms, rounded up. */
const inMs = (instant: string): string => `ceil(extract(epoch FROM ${instant}) * 1000)::float8`
const NOW_MS = inMs('clock_timestamp()')

/**
 * The number that was given to an event last, whether or not its transaction has committed; 0 before the first. Where the
 * clock has stepped back, its time is that of the newest event.
 */
export function lastPosition(db: Db): Promise<StreamPosition> {
  return sql(
    `SELECT ${LAST_SEQUENCE}::float8 AS sequence,
            greatest(${NOW_MS}, (SELECT ${inMs('max(created_at)')} FROM event WHERE created_at > now())) AS "atMs"`,
  ).one(db)
}

/**
 * The transactions that have written to the table of events, or may be about to, and have not ended: PostgreSQL gives
 * a statement its lock on the table before it runs, and takes it back after the commit can be seen.
 */
export function eventWriters(db: Db): Promise<string[]> {
  return sql(`SELECT DISTINCT virtualtransaction AS id FROM pg_locks
      WHERE locktype = 'relation' AND relation = 'event'::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND granted AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`).ids(
    db,
  )
}

/** The events of these organisations in a range of numbers, in their order. */
export function readEvents(
  db: Db,
  organisationIds: string[],
  { after, upTo }: EventRange,
): Promise<ReadEvent[]> {
  return sql(
    `SELECT ${EVENT_COLUMNS} FROM event
      WHERE organisation_id = ANY(:organisationIds::text[]) AND sequence > :after AND sequence <= :sequence AND NOT is_test
      ORDER BY event.sequence`,
    { organisationIds, after, ...upTo },
  ).rows(db)
}

/** `horizon`: events up to this number may be missing. `upTo`: the page holds all events up to this number. */
export type EventPage = { horizon: number; upTo: number; events: StreamedEvent[] }

/**
 * The first `limit` events of one organisation in a range that have one of `keys` (null: any key), and its horizon at that
 * instant: where retention ends, or the end of the range where an event is later than it. The last event is the one whose
 * body reaches `maxBytes` together with the others.
 */
export async function readEventPage(
  db: Db,
  organisationId: string,
  { upTo, ...range }: EventRange & { keys: string[] | null; limit: number; maxBytes: number },
): Promise<EventPage> {
  const found = await sql(
    `SELECT coalesce(h.sequence, 0)::float8 AS horizon, e.* FROM
       (SELECT (SELECT sequence FROM event_horizon WHERE organisation_id = :organisationId) AS sequence) h
       LEFT JOIN (
         SELECT *, coalesce(sum(octet_length(body)) OVER (ORDER BY sequence), 0)::float8 AS bytes FROM (
           SELECT ${EVENT_COLUMNS} FROM event
            WHERE organisation_id = :organisationId AND sequence > :after AND sequence <= :sequence
              AND (:keys::text[] IS NULL OR key = ANY(:keys::text[])) AND NOT is_test ORDER BY event.sequence LIMIT :limit
         ) page
       ) e ON e.bytes - coalesce(octet_length(e.body), 0) < :maxBytes
      ORDER BY e.sequence`,
    { organisationId, ...upTo, ...range },
  ).rows<ReadEvent & { horizon: number; bytes: number | null }>(db)
  // Where there is no event, its columns are null in the one row that there is.
  const events = found.filter(({ id }) => (id as string | null) !== null)
  const last = found.at(-1)
  const isFull = events.length === range.limit || (last?.bytes ?? 0) >= range.maxBytes
  return {
    horizon: events.some(({ isLater }) => isLater) ? upTo.sequence : (last?.horizon ?? 0),
    upTo: isFull && last !== undefined ? last.sequence : upTo.sequence,
    events,
  }
}

/** The position of an event; null when the organisation has no such event, or has it no longer. */
export function findEventPosition(
  db: Db,
  organisationId: string,
  eventId: string,
): Promise<StreamPosition | null> {
  return sql(
    `SELECT sequence::float8 AS sequence,
            greatest(${NOW_MS}, ${inMs('created_at')}) AS "atMs"
       FROM event WHERE organisation_id = :organisationId AND id = :eventId::uuid`,
    { organisationId, eventId },
  ).first(db)
}

/**
 * True when the database still has the order that the position is in. One that was replaced by an older one gives the same
 * numbers to other events: later than the position, although with numbers up to it.
 */
export async function isPositionValid(
  db: Db,
  organisationId: string,
  { sequence, atMs }: StreamPosition,
): Promise<boolean> {
  const found = await sql(
    `SELECT 1 WHERE ${LAST_SEQUENCE} >= :sequence AND NOT EXISTS (
       SELECT 1 FROM (
         SELECT created_at FROM event WHERE organisation_id = :organisationId AND sequence <= :sequence
          ORDER BY sequence DESC LIMIT 1
       ) newest WHERE created_at > to_timestamp(:atMs / 1000.0)
     )`,
    { organisationId, sequence, atMs },
  ).first(db)
  return found !== null
}

/** `isPositionValid` for the events of all organisations, for a recent position. */
export async function isOrderKept(db: Db, { sequence, atMs }: StreamPosition): Promise<boolean> {
  const found = await sql(
    `SELECT 1 WHERE NOT EXISTS (
       SELECT 1 FROM event WHERE created_at > to_timestamp(:atMs / 1000.0) AND sequence <= :sequence)`,
    { sequence, atMs },
  ).first(db)
  return found !== null
}
