import type { PublishedEvent } from '../harness/generator.ts'
import { postsUntilConfirmed, type Arrival } from '../harness/receiver.ts'
import { rounded } from './distribution.ts'

/** What was promised, compared with what receivers got. `problems` describes what broke. */
export type Ledger = { lost: number; doubled: number; problems: string[] }

/**
 * Counts exactly: a delivery is lost that did not come as often as it takes until its receiver confirms, and every POST
 * beyond that is a double. Call it when everything has had time to come.
 */
export function settle(deliveryIds: readonly string[], arrivals: readonly Arrival[]): Ledger {
  const posts = groupByDelivery(arrivals)
  let lost = 0
  let doubled = 0
  for (const id of deliveryIds) {
    const came = posts.get(id) ?? []
    const expected = came[0] === undefined ? 1 : postsUntilConfirmed(came[0].path)
    if (came.length < expected) lost += 1
    else doubled += came.length - expected
  }
  const of = `of ${deliveryIds.length} deliveries`
  const problems = [
    ...(lost > 0 ? [`${lost} ${of} lost`] : []),
    ...(doubled > 0 ? [`${doubled} POSTs ${of} doubled`] : []),
  ]
  return { lost, doubled, problems }
}

/** The same for what producers published; an event that was not accepted is a problem too. */
export function settlePublished(published: readonly PublishedEvent[], arrivals: readonly Arrival[]): Ledger {
  const ledger = settle(
    published.flatMap(({ deliveryIds }) => deliveryIds),
    arrivals,
  )
  return { ...ledger, problems: [...ledger.problems, ...refusals(published)] }
}

/** In words; nothing if every event was accepted. */
export function refusals(published: readonly PublishedEvent[]): string[] {
  const [first, ...others] = published.flatMap(({ error }) => error ?? [])
  return first === undefined ? [] : [`${1 + others.length} events not accepted, the first: ${first}`]
}

/** All POSTs of each delivery, in order. */
export function groupByDelivery(arrivals: readonly Arrival[]): Map<string, Arrival[]> {
  const grouped = new Map<string, Arrival[]>()
  for (const arrival of arrivals) {
    const same = grouped.get(arrival.deliveryId)
    if (same === undefined) grouped.set(arrival.deliveryId, [arrival])
    else same.push(arrival)
  }
  return grouped
}

/** The first POST of each delivery that was published, with its event. */
export function firstPosts(
  published: readonly PublishedEvent[],
  arrivals: readonly Arrival[],
): { event: PublishedEvent; arrival: Arrival }[] {
  const posts = groupByDelivery(arrivals)
  return published.flatMap((event) =>
    event.deliveryIds.flatMap((id) => {
      const arrival = posts.get(id)?.[0]
      return arrival === undefined ? [] : [{ event, arrival }]
    }),
  )
}

/** Of each first POST, from when its event was to be sent. */
export function waitsOf(published: readonly PublishedEvent[], arrivals: readonly Arrival[]): number[] {
  return firstPosts(published, arrivals).map(({ event, arrival }) => arrival.arrivedAt - event.intendedAt)
}

/** Of events that were published as fast as they were acknowledged. Times are from the first request on. */
export type BurstFigures = Ledger & {
  publishedPerSecond: number
  /** Until the last arrival. */
  tookMs: number
  /** Deliveries that arrived. */
  perSecond: number
}

export function burstFigures(
  published: readonly PublishedEvent[],
  arrivals: readonly Arrival[],
): BurstFigures {
  const startedAt = Math.min(...published.map(({ sentAt }) => sentAt))
  const acknowledgedMs = Math.max(...published.map(({ acknowledgedAt }) => acknowledgedAt)) - startedAt
  const posts = firstPosts(published, arrivals)
  const tookMs = Math.max(...posts.map(({ arrival }) => arrival.arrivedAt)) - startedAt
  return {
    publishedPerSecond: rounded((published.length / acknowledgedMs) * 1_000),
    tookMs: rounded(tookMs),
    perSecond: rounded((posts.length / tookMs) * 1_000),
    ...settlePublished(published, arrivals),
  }
}
