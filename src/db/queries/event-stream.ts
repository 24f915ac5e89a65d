// Hand-written: reads sequences, locks and pages with their horizon, which are no entities.
import { sql, type Db } from '../db.ts'

/** An event as the stream sends it. `sequence` orders all events of the database; it is never sent. */
export type StreamedEvent = {
  id: string
  organisationId: string
  sequence: number
  key: string
  body: Buffer
}

type Row = Omit<StreamedEvent, 'sequence'> & { sequence: string }

/** The number that was given to an event last, whether or not its transaction has committed; 0 before the first. */
export async function lastSequence(db: Db): Promise<number> {
  const found = await sql(
    `SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('event', 'sequence')::regclass), 0)::text AS last`,
  ).first<{ last: string }>(db)
  return Number(found?.last)
}

/**
 * The transactions that have written to the table of events, or may be about to, and have not ended: PostgreSQL gives
 * a statement its lock on the table before it runs, and takes it back after the commit can be seen.
 */
export async function eventWriters(db: Db): Promise<string[]> {
  const found = await sql(`SELECT DISTINCT virtualtransaction AS id FROM pg_locks
      WHERE locktype = 'relation' AND relation = 'event'::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND granted AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`).rows<{
    id: string
  }>(db)
  return found.map(({ id }) => id)
}

/** The events of these organisations in a range of numbers, in their order. */
export async function readEvents(
  db: Db,
  organisationIds: string[],
  { after, upTo }: { after: number; upTo: number },
): Promise<StreamedEvent[]> {
  const found = await sql(
    `SELECT id, organisation_id AS "organisationId", sequence, key, body FROM event
      WHERE organisation_id = ANY(:organisationIds::text[]) AND sequence > :after AND sequence <= :upTo AND NOT is_test
      ORDER BY sequence`,
    { organisationIds, after, upTo },
  ).rows<Row>(db)
  return found.map(numbered)
}

/** `horizon`: retention may have deleted events up to this number. */
export type EventPage = { horizon: number; events: StreamedEvent[] }

/** The first `limit` events of one organisation in a range that have one of `keys`, and its horizon at that instant. */
export async function readEventPage(
  db: Db,
  organisationId: string,
  { after, upTo, keys, limit }: { after: number; upTo: number; keys: string[]; limit: number },
): Promise<EventPage> {
  const found = await sql(
    `SELECT coalesce(h.sequence, 0)::text AS horizon, e.* FROM
       (SELECT (SELECT sequence FROM event_horizon WHERE organisation_id = :organisationId) AS sequence) h
       LEFT JOIN LATERAL (
         SELECT id, organisation_id AS "organisationId", sequence, key, body FROM event
          WHERE organisation_id = :organisationId AND sequence > :after AND sequence <= :upTo AND key = ANY(:keys::text[])
            AND NOT is_test ORDER BY sequence LIMIT :limit
       ) e ON true
      ORDER BY e.sequence`,
    { organisationId, after, upTo, keys, limit },
  ).rows<Row & { horizon: string }>(db)
  return {
    horizon: Number(found[0]?.horizon),
    // Where there is no event, its columns are null in the one row that there is.
    events: found.filter((row) => (row.id as string | null) !== null).map(numbered),
  }
}

/** The place of an event in the order; null when the organisation has no such event, or has it no longer. */
export async function findSequence(db: Db, organisationId: string, eventId: string): Promise<number | null> {
  const found = await sql(
    `SELECT sequence FROM event WHERE organisation_id = :organisationId AND id = :eventId::uuid`,
    {
      organisationId,
      eventId,
    },
  ).first<{ sequence: string }>(db)
  return found === null ? null : Number(found.sequence)
}

/** How many of an organisation's newest events are searched for one that a member may see. */
const LOOK_BACK = 100

/** The id of the newest event up to a number that has one of `keys`; null when none of the latest few has. */
export async function findNewestEvent(
  db: Db,
  organisationId: string,
  { upTo, keys }: { upTo: number; keys: string[] },
): Promise<string | null> {
  const found = await sql(
    `SELECT id FROM (
       SELECT id, key, sequence FROM event
        WHERE organisation_id = :organisationId AND sequence <= :upTo AND NOT is_test
        ORDER BY sequence DESC LIMIT ${LOOK_BACK}
     ) latest WHERE key = ANY(:keys::text[]) ORDER BY sequence DESC LIMIT 1`,
    { organisationId, upTo, keys },
  ).first<{ id: string }>(db)
  return found?.id ?? null
}

function numbered({ id, organisationId, sequence, key, body }: Row): StreamedEvent {
  return { id, organisationId, sequence: Number(sequence), key, body }
}
