import { setTimeout as delay } from 'node:timers/promises'
import type { Pace, PublishedEvent, PublishJob } from './harness/generator.ts'
import type { Arrival, PathCount } from './harness/receiver.ts'
import { settlePublished, waitsOf, type Ledger } from './measure/ledger.ts'
import { ORGANISATION } from './organisation.ts'
import type { Rig } from './rig.ts'
import { readDeliveryIds, publishRequest } from './target/posthorn.ts'

/** What events are published to, with an API like Posthorn's. */
export type Load = {
  publish(
    eventKey: string,
    job: Pick<PublishJob, 'pace' | 'limit'> & { bodyBytes?: number },
  ): Promise<PublishedEvent[]>
  /** Waits until so many came to a path. Gives up when nothing new has come for a while. */
  arrived(path: string, expected: Partial<PathCount>): Promise<void>
  /** What came since it was last asked; waits a moment before, for doubles that are late. */
  takeArrivals(): Promise<Arrival[]>
  /** Waits until every delivery is recorded as completed. Answers in words what is not. */
  settled(): Promise<string[]>
  /** Processor time in ms so far, by process. */
  cpu(): Record<string, number>
}

/** As fast as events are acknowledged. */
export const BURST: Pace = { kind: 'closed', concurrency: 32 }

const POLL_MS = 100
/** Longer than any wait of the schedule that a scenario measures, and than the 15 s that a receiver may take. */
const NOTHING_NEW_MS = 40_000
/** Time for a POST that should not come. */
const DOUBLES_MS = 1_000

/** `apiUrls`: requests go to them round-robin. */
export function loadOn(
  { generator, receiver }: Pick<Rig, 'generator' | 'receiver'>,
  apiUrls: readonly string[],
): Pick<Load, 'publish' | 'arrived' | 'takeArrivals'> {
  return {
    publish: (eventKey, { bodyBytes, ...job }) =>
      generator.publish(
        { apiUrls, request: publishRequest(ORGANISATION, eventKey, bodyBytes), ...job },
        readDeliveryIds,
      ),
    async arrived(path, { posts = 0, deliveries = 0 }) {
      let last = { posts: 0, at: Date.now() }
      for (;;) {
        const came = (await receiver.counts())[path] ?? { posts: 0, deliveries: 0 }
        if (came.posts >= posts && came.deliveries >= deliveries) return
        if (came.posts > last.posts) last = { posts: came.posts, at: Date.now() }
        if (Date.now() - last.at > NOTHING_NEW_MS) return
        await delay(POLL_MS)
      }
    },
    async takeArrivals() {
      await delay(DOUBLES_MS)
      return receiver.take()
    },
  }
}

/** `waits`: see `waitsOf`. `unsettled`: see `Load.settled`; empty unless that was waited for. */
export type Delivered = Ledger & {
  published: PublishedEvent[]
  arrivals: Arrival[]
  waits: number[]
  unsettled: string[]
}

/** Publishes events of one webhook, waits until they have come, and compares what came with what was promised. */
export async function deliver(
  load: Load,
  { path, eventKey }: { path: string; eventKey: string },
  { events, pace, isSettled = false }: { events: number; pace: Pace; isSettled?: boolean },
): Promise<Delivered> {
  const published = await load.publish(eventKey, { pace, limit: { events } })
  await load.arrived(path, { deliveries: events })
  const unsettled = isSettled ? await load.settled() : []
  const arrivals = await load.takeArrivals()
  const waits = waitsOf(published, arrivals)
  return { published, arrivals, waits, unsettled, ...settlePublished(published, arrivals) }
}
