import { LRUCache } from 'lru-cache'
import type { DeliveryLabel } from '../../domain/workflow-inputs.ts'
import { MAX_WEBHOOKS_PER_ORGANISATION } from '../../domain/webhook-status.ts'
import type { Audience, Rooms } from '../protocol/commit-events.ts'
import type { InlineAttempts } from './inline-attempts.ts'
import { createTally } from '../../tally.ts'
import { limitToRoom, type Capacity } from './puller.ts'

/** Inline attempts for which a statement is under way that claims them. `settle` ends it, once: they are queued, or not claimed. */
type Reserved = { settle: () => void }

/** Reserves room for inline attempts while statements claim them. */
export type Reservations = Capacity & {
  /** Notes which webhooks get the events of an organisation and key. */
  note(delivery: DeliveryLabel): void
  /** Reserves room for a statement that commits so many deliveries of events with these audiences. */
  forCommit(audiences: readonly Audience[], count: number): Reserved & { rooms: Rooms }
  /** Reserves room for those of the deliveries for which there is some. */
  forClaims<Item extends DeliveryLabel>(deliveries: readonly Item[]): Reserved & { fitting: Item[] }
}

/** Room of an endpoint that this process does not know: it has one slot until it answers. */
const UNKNOWN_ROOM = 1

/** Organisations with event keys whose webhooks are noted. */
const MAX_AUDIENCES = 10_000

export function createReservations(inline: Pick<InlineAttempts, keyof Capacity>): Reservations {
  // The webhook that got a delivery last comes last.
  const webhooksOf = new LRUCache<string, Set<string>>({
    max: MAX_AUDIENCES,
    memoMethod: () => new Set(),
  })
  const reserved = createTally()
  let reservedInAll = 0

  function reserve(rooms: readonly { webhookId: string; room: number }[], inAll: number): () => void {
    const change = (by: 1 | -1): void => {
      reservedInAll += by * inAll
      for (const { webhookId, room } of rooms) reserved.add(webhookId, by * room)
    }
    change(1)
    return () => change(-1)
  }

  const room = (): number => Math.max(0, inline.room() - reservedInAll)
  const roomOf = (webhookId: string): number => Math.max(0, inline.roomOf(webhookId) - reserved.of(webhookId))

  return {
    note({ organisationId, eventKey, webhookId }) {
      const ids = webhooksOf.memo(`${organisationId} ${eventKey}`)
      ids.delete(webhookId)
      ids.add(webhookId)
      const [oldest] = ids
      if (oldest !== undefined && ids.size > MAX_WEBHOOKS_PER_ORGANISATION) ids.delete(oldest)
    },
    room,
    roomOf,
    forCommit(audiences, count) {
      const inAll = Math.min(count, room())
      // An event has one delivery of a webhook.
      const most = Math.min(inAll, audiences.length)
      const addressed = audiences.flatMap(({ webhookId }) => webhookId ?? [])
      const others = audiences.filter(({ webhookId }) => webhookId === null)
      const noted = [...new Set(others.map(({ organisationId, key }) => `${organisationId} ${key}`))]
      const ids = [...addressed, ...noted.flatMap((audience) => [...(webhooksOf.get(audience) ?? [])])]
      const webhooks = [...new Set(ids)].map((webhookId) => {
        return { webhookId, room: Math.min(most, roomOf(webhookId)) }
      })
      const defaultRoom = Math.min(most, UNKNOWN_ROOM)
      const listed = webhooks.filter((one) => one.room !== defaultRoom)
      return { rooms: { inAll, defaultRoom, webhooks: listed }, settle: reserve(webhooks, inAll) }
    },
    forClaims(deliveries) {
      const claimed = limitToRoom(deliveries, { room, roomOf })
      const rooms = claimed.map(({ webhookId }) => ({ webhookId, room: 1 }))
      return { fitting: claimed, settle: reserve(rooms, claimed.length) }
    },
  }
}
