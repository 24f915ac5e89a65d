import { firstRow, rows, type Db } from '../db.ts'

/** An event as the stream sends it. `sequence` orders all events of the database; it never leaves the house. */
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
  const found = await firstRow<{ last: string }>(
    db,
    `SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('event', 'sequence')::regclass), 0)::text AS last`,
  )
  return Number(found?.last)
}

/**
 * The transactions that have written to the table of events, or may be about to, and have not ended: PostgreSQL gives
 * a statement its lock on the table before it runs, and takes it back after the commit can be seen.
 */
export async function eventWriters(db: Db): Promise<string[]> {
  const found = await rows<{ id: string }>(
    db,
    `SELECT DISTINCT virtualtransaction AS id FROM pg_locks
      WHERE locktype = 'relation' AND relation = 'event'::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND granted AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`,
  )
  return found.map(({ id }) => id)
}

/** The events of these organisations in a range of numbers, in their order. */
export async function readEvents(
  db: Db,
  organisationIds: string[],
  { after, upTo }: { after: number; upTo: number },
): Promise<StreamedEvent[]> {
  const found = await rows<Row>(
    db,
    `SELECT id, organisation_id AS "organisationId", sequence, key, body FROM event
      WHERE organisation_id = ANY($1::text[]) AND sequence > $2 AND sequence <= $3 ORDER BY sequence`,
    [organisationIds, after, upTo],
  )
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
  const found = await rows<Row & { horizon: string }>(
    db,
    `SELECT coalesce(h.sequence, 0)::text AS horizon, e.* FROM
       (SELECT (SELECT sequence FROM event_horizon WHERE organisation_id = $1) AS sequence) h
       LEFT JOIN LATERAL (
         SELECT id, organisation_id AS "organisationId", sequence, key, body FROM event
          WHERE organisation_id = $1 AND sequence > $2 AND sequence <= $3 AND key = ANY($4::text[])
          ORDER BY sequence LIMIT $5
       ) e ON true
      ORDER BY e.sequence`,
    [organisationId, after, upTo, keys, limit],
  )
  return {
    horizon: Number(found[0]?.horizon),
    // Where there is no event, its columns are null in the one row that there is.
    events: found.filter((row) => (row.id as string | null) !== null).map(numbered),
  }
}

/** The place of an event in the order; null when the organisation has no such event, or has it no longer. */
export async function findSequence(db: Db, organisationId: string, eventId: string): Promise<number | null> {
  const found = await firstRow<{ sequence: string }>(
    db,
    `SELECT sequence FROM event WHERE organisation_id = $1 AND id = $2::uuid`,
    [organisationId, eventId],
  )
  return found === null ? null : Number(found.sequence)
}

/** How many of an organisation's newest events are looked at for one that a member may know of. */
const LOOK_BACK = 100

/** The id of the newest event up to a number that has one of `keys`; null when none of the latest few has. */
export async function findNewestEvent(
  db: Db,
  organisationId: string,
  { upTo, keys }: { upTo: number; keys: string[] },
): Promise<string | null> {
  const found = await firstRow<{ id: string }>(
    db,
    `SELECT id FROM (
       SELECT id, key, sequence FROM event WHERE organisation_id = $1 AND sequence <= $2
        ORDER BY sequence DESC LIMIT ${LOOK_BACK}
     ) latest WHERE key = ANY($3::text[]) ORDER BY sequence DESC LIMIT 1`,
    [organisationId, upTo, keys],
  )
  return found?.id ?? null
}

function numbered({ id, organisationId, sequence, key, body }: Row): StreamedEvent {
  return { id, organisationId, sequence: Number(sequence), key, body }
}
