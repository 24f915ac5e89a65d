import { LRUCache } from 'lru-cache'
import type { DeliveryLabel } from '../../domain/workflow-labels.ts'
import type { Rooms } from '../protocol/commit-events.ts'
import type { InlineAttempts } from './inline-attempts.ts'
import type { Capacity } from './puller.ts'

/** Inline attempts for which a statement is under way that claims them. `settle` ends it: they are queued, or not claimed. */
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

/** Organisations whose webhooks are noted. */
const MAX_ORGANISATIONS = 10_000

export function createReservations(inline: Pick<InlineAttempts, keyof Capacity>): Reservations {
  const webhooksOf = new LRUCache<string, Set<string>>({
    max: MAX_ORGANISATIONS,
    memoMethod: () => new Set(),
  })
  const reserved = new Map<string, number>()
  let reservedInAll = 0

  function reserve(counts: ReadonlyMap<string, number>, inAll: number): () => void {
    const change = (by: 1 | -1): void => {
      reservedInAll += by * inAll
      for (const [id, count] of counts) {
        const total = (reserved.get(id) ?? 0) + by * count
        if (total === 0) reserved.delete(id)
        else reserved.set(id, total)
      }
    }
    let settle = (): void => {
      settle = () => undefined
      change(-1)
    }
    change(1)
    return () => settle()
  }

  const room = (): number => Math.max(0, inline.room() - reservedInAll)
  const roomOf = (webhookId: string): number =>
    Math.max(0, inline.roomOf(webhookId) - (reserved.get(webhookId) ?? 0))

  return {
    queued: () => inline.queued(),
    queuedOf: (webhookId) => inline.queuedOf(webhookId),
    note: ({ organisationId, webhookId }) => void webhooksOf.memo(organisationId).add(webhookId),
    room,
    roomOf,
    forCommit(organisationIds, count) {
      const inAll = Math.min(count, room())
      const webhooks = [...new Set(organisationIds)]
        .flatMap((id) => [...(webhooksOf.get(id) ?? [])])
        .map((webhookId) => ({ webhookId, room: Math.min(inAll, roomOf(webhookId)) }))
      const settle = reserve(new Map(webhooks.map((one) => [one.webhookId, one.room])), inAll)
      const defaultRoom = Math.min(inAll, UNKNOWN_ROOM)
      const listed = webhooks.filter((one) => one.room !== defaultRoom)
      return { rooms: { defaultRoom, webhooks: listed }, settle }
    },
    forClaims(deliveries) {
      const counts = new Map<string, number>()
      const left = room()
      const fitting = deliveries.filter(({ webhookId }, index) => {
        const count = counts.get(webhookId) ?? 0
        if (index >= left || count >= roomOf(webhookId)) return false
        counts.set(webhookId, count + 1)
        return true
      })
      return { fitting, settle: reserve(counts, fitting.length) }
    },
  }
}
