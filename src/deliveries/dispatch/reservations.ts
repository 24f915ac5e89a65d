import { LRUCache } from 'lru-cache'
import type { DeliveryLabel } from '../../domain/workflow-inputs.ts'
import type { Rooms } from '../protocol/commit-events.ts'
import type { InlineAttempts } from './inline-attempts.ts'
import { limitToRoom, type Capacity } from './puller.ts'

/** Inline attempts for which a statement is under way that claims them. `settle` ends it, once: they are queued, or not claimed. */
type Reserved = { settle: () => void }

/** Reserves room for inline attempts while statements claim them. */
export type Reservations = Capacity & {
  /** Notes which webhooks an organisation has. */
  note(delivery: DeliveryLabel): void
  /** Reserves room for a statement that commits so many deliveries of these organisations. */
  forCommit(organisationIds: readonly string[], count: number): Reserved & { rooms: Rooms }
  /** Reserves room for those of the deliveries for which there is some. */
  forClaims<Item extends DeliveryLabel>(deliveries: readonly Item[]): Reserved & { fitting: Item[] }
}

/** Room of an endpoint that this process does not know: it has one slot until it answers. */
const UNKNOWN_ROOM = 1

/** Organisations whose webhooks are noted, and webhooks of each: as many as it may have at a time. */
const MAX_ORGANISATIONS = 10_000
const MAX_WEBHOOKS = 1_000

export function createReservations(inline: Pick<InlineAttempts, keyof Capacity>): Reservations {
  // The webhook that got a delivery last comes last.
  const webhooksOf = new LRUCache<string, Set<string>>({
    max: MAX_ORGANISATIONS,
    memoMethod: () => new Set(),
  })
  const reserved = new Map<string, number>()
  let reservedInAll = 0

  function reserve(rooms: readonly { webhookId: string; room: number }[], inAll: number): () => void {
    const change = (by: 1 | -1): void => {
      reservedInAll += by * inAll
      for (const { webhookId, room } of rooms) {
        const total = (reserved.get(webhookId) ?? 0) + by * room
        if (total === 0) reserved.delete(webhookId)
        else reserved.set(webhookId, total)
      }
    }
    change(1)
    return () => change(-1)
  }

  const room = (): number => Math.max(0, inline.room() - reservedInAll)
  const roomOf = (webhookId: string): number =>
    Math.max(0, inline.roomOf(webhookId) - (reserved.get(webhookId) ?? 0))

  return {
    note({ organisationId, webhookId }) {
      const ids = webhooksOf.memo(organisationId)
      ids.delete(webhookId)
      ids.add(webhookId)
      const [oldest] = ids
      if (oldest !== undefined && ids.size > MAX_WEBHOOKS) ids.delete(oldest)
    },
    room,
    roomOf,
    forCommit(organisationIds, count) {
      const inAll = Math.min(count, room())
      const webhooks = [...new Set(organisationIds)]
        .flatMap((id) => [...(webhooksOf.get(id) ?? [])])
        .map((webhookId) => ({ webhookId, room: Math.min(inAll, roomOf(webhookId)) }))
      const defaultRoom = Math.min(inAll, UNKNOWN_ROOM)
      const listed = webhooks.filter((one) => one.room !== defaultRoom)
      return { rooms: { defaultRoom, webhooks: listed }, settle: reserve(webhooks, inAll) }
    },
    forClaims(deliveries) {
      const claimed = limitToRoom(deliveries, { room, roomOf })
      const rooms = claimed.map(({ webhookId }) => ({ webhookId, room: 1 }))
      return { fitting: claimed, settle: reserve(rooms, claimed.length) }
    },
  }
}
