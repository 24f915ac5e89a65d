import type { Db } from '../../db/db.ts'
import type { DeliveryLabel } from '../../domain/workflow-labels.ts'
import { loadSql } from './load-sql.ts'

const STATEMENT = loadSql('commit-events')

export type NewEvent = {
  id: string
  organisationId: string
  key: string
  body: Buffer
  emittedAt: Date
  traceId: string
  /** A test event, for this webhook only; null for all that are subscribed. */
  webhookId: string | null
}

/** How many first attempts of each webhook the process begins at once; `defaultRoom` of those that are not listed. */
export type Rooms = { defaultRoom: number; webhooks: readonly { webhookId: string; room: number }[] }

/**
 * What a process reserves for the deliveries of a commit, until `settle`: the first attempts that it begins at once; any
 * process takes up the others after `sweepAfterMs`.
 */
export type Reservation = { rooms: Rooms; sweepAfterMs: number; settle: () => void }

/**
 * How a process commits. `reserve` is called just before the statement is sent; at most `count` deliveries are expected.
 * `leaseMs`: how long the runs of a commit have their rows.
 */
export type Commits = {
  reserve: (organisationIds: readonly string[], count: number) => Reservation
  leaseMs: number
}

/** A delivery that was just committed. */
export type CommittedDelivery = DeliveryLabel & {
  /** The run that is to begin its first attempt within a second; null for a pending delivery. */
  owner: string | null
  /** When the statement was sent, on `performance.now()`. */
  committedAtMs: number
  /** When any process may take it up, and until when that leaves a pending one to this process. */
  sweepAt: Date
  heldUntilMs: number
  /** What a first attempt needs. `secret` is sealed. */
  payload: { body: Buffer; secret: string | null; traceId: string }
}

type Row = Omit<CommittedDelivery, 'committedAtMs' | 'heldUntilMs' | 'payload'> & {
  eventId: string
  secret: string | null
}

/**
 * Commits events with their deliveries: either all of them or none. The runs of those that begin at once have their rows
 * for `leaseMs`; any process takes up the others after `sweepAfterMs`. Returns them per event, in the order of `events`
 * and of their ids.
 */
export async function commitEvents(
  db: Db,
  events: readonly NewEvent[],
  options: Omit<Reservation, 'settle'> & { leaseMs: number },
): Promise<CommittedDelivery[][]> {
  const { rooms, leaseMs, sweepAfterMs } = options
  const committedAtMs = performance.now()
  let next = 1
  const starts = events.map(({ body }) => (next += body.length) - body.length)
  const statement = STATEMENT.with({
    ids: events.map(({ id }) => id),
    organisationIds: events.map(({ organisationId }) => organisationId),
    webhookIds: events.map(({ webhookId }) => webhookId),
    keys: events.map(({ key }) => key),
    emittedAts: events.map(({ emittedAt }) => emittedAt),
    traceIds: events.map(({ traceId }) => traceId),
    // As one value, as they are.
    bodies: Buffer.concat(events.map(({ body }) => body)),
    starts,
    lengths: events.map(({ body }) => body.length),
    defaultRoom: rooms.defaultRoom,
    roomIds: rooms.webhooks.map(({ webhookId }) => webhookId),
    rooms: rooms.webhooks.map(({ room }) => room),
    leaseMs,
    sweepAfterMs,
  })
  const found = await statement.preparedRows<Row>(db, STATEMENT.name)
  const given = new Map(events.map((event) => [event.id, event]))
  const byEvent = new Map(events.map(({ id }) => [id, [] as CommittedDelivery[]]))
  for (const row of found) {
    const event = given.get(row.eventId)
    if (event !== undefined)
      byEvent
        .get(event.id)
        ?.push(committed(row, event, { committedAtMs, heldUntilMs: committedAtMs + sweepAfterMs }))
  }
  return [...byEvent.values()]
}

function committed(
  row: Row,
  { body, traceId }: NewEvent,
  times: { committedAtMs: number; heldUntilMs: number },
): CommittedDelivery {
  const { deliveryId, organisationId, webhookId, eventKey, url, owner, sweepAt, secret } = row
  const { committedAtMs, heldUntilMs } = times
  const payload = { body, secret, traceId }
  return {
    deliveryId,
    organisationId,
    webhookId,
    eventKey,
    url,
    owner,
    committedAtMs,
    sweepAt,
    heldUntilMs,
    payload,
  }
}
