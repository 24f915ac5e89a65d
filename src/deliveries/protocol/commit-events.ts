import type { Db } from '../../db/connection/db.ts'
import type { Event } from '../../db/entities/event.ts'
import type { UnstartedDelivery } from '../../db/queries/due-deliveries.ts'
import type { DeliveryLabel } from '../../domain/workflow-inputs.ts'
import type { Claim } from './claim.ts'
import { loadSql } from './load-sql.ts'

const STATEMENT = loadSql('commit-events')

export type NewEvent = Pick<Event, 'id' | 'organisationId' | 'key' | 'emittedAt' | 'traceId'> & {
  body: Buffer
  /** A test event, for this webhook only; null for all that are subscribed. */
  webhookId: string | null
}

/** Which webhooks an event goes to. */
export type Audience = Pick<NewEvent, 'organisationId' | 'key' | 'webhookId'>

/**
 * How many first attempts of each webhook the process begins at once, `defaultRoom` of those that are not listed, and of
 * all webhooks together.
 */
export type Rooms = {
  inAll: number
  defaultRoom: number
  webhooks: readonly { webhookId: string; room: number }[]
}

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
  reserve: (audiences: readonly Audience[], count: number) => Reservation
  leaseMs: number
}

/** A delivery without a workflow whose row is left to this process until `heldUntilMs`, on `performance.now()`. */
export type HeldDelivery = UnstartedDelivery & { heldUntilMs: number }

/**
 * A delivery that was just committed. `claim`: of the run that is to begin its first attempt within a second; null for a
 * pending delivery.
 */
export type CommittedDelivery = HeldDelivery & ({ claim: Claim } | { claim: null })

/** Commits events as {@link commitEvents} does, with a reservation of this process for `count` deliveries at most. */
export async function commitReserved(
  db: Db,
  { reserve, leaseMs }: Commits,
  events: readonly NewEvent[],
  count: number,
): Promise<CommittedDelivery[][]> {
  const reserved = reserve(events, count)
  try {
    return await commitEvents(db, events, { ...reserved, leaseMs })
  } finally {
    reserved.settle()
  }
}

type Row = DeliveryLabel & { eventId: string; owner: string | null; sweepAt: Date; secret: string | null }

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
  let claimedAtMs = NaN
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
    roomInAll: rooms.inAll,
    defaultRoom: rooms.defaultRoom,
    roomIds: rooms.webhooks.map(({ webhookId }) => webhookId),
    rooms: rooms.webhooks.map(({ room }) => room),
    leaseMs,
    sweepAfterMs,
  })
  const found = await statement.preparedRows<Row>(db, STATEMENT.name, () => {
    claimedAtMs = performance.now()
  })
  const given = new Map(events.map((event) => [event.id, event]))
  const byEvent = new Map(events.map(({ id }) => [id, [] as CommittedDelivery[]]))
  for (const row of found) {
    const event = given.get(row.eventId)
    const times = { claimedAtMs, heldUntilMs: claimedAtMs + sweepAfterMs }
    if (event !== undefined) byEvent.get(event.id)?.push(committed(row, event, times))
  }
  return [...byEvent.values()]
}

function committed(
  { deliveryId, organisationId, webhookId, eventKey, url, owner, sweepAt, secret }: Row,
  { body, traceId }: NewEvent,
  { claimedAtMs, heldUntilMs }: { claimedAtMs: number; heldUntilMs: number },
): CommittedDelivery {
  const run = { runs: 1, isRequested: false, ageMs: 0, webhookId, eventKey, traceId, url, secret, body }
  return {
    deliveryId,
    organisationId,
    webhookId,
    eventKey,
    url,
    attempts: 0,
    nextAttemptAt: null,
    dueInMs: 0,
    sweepAt,
    heldUntilMs,
    claim: owner === null ? null : { ...run, owner, claimedAtMs },
  }
}
