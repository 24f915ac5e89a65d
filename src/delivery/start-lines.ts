import { setTimeout as delay } from 'node:timers/promises'
import type { DeliveryToStart } from '../db/queries/events.ts'
import { createFairLine, type FairLine } from './fair-line.ts'

/**
 * Deliveries that wait to be handed to the engine: those of webhooks that are well, and apart from them the others.
 * `ready` tells of the first only.
 */
export type StartLines = Omit<FairLine<DeliveryToStart>, 'add' | 'next' | 'drain'> & {
  add(delivery: DeliveryToStart, apart: boolean): void
  /** Takes out all that wait. */
  drain(): DeliveryToStart[]
}

/** Of webhooks that are not well, together. A workflow's beginning is most of what it costs. */
const MOST_STARTS_APART = 4

/** Shorter pauses are no use to anybody. */
const SHORTEST_PAUSE_MS = 2

/** Well before the shortest wait of the schedule is over. */
const TURN_MS = 18
const LONGEST_TURN_MS = 600

/**
 * Turns for starts that have time until an instant: what hangs ends together, and begun together its workflows would
 * leave the engine no time for anybody else. The first comes at once, and nobody waits for more than LONGEST_TURN_MS.
 */
export function createTurns(): () => Promise<void> {
  let lastMs = -Infinity
  return async () => {
    const now = performance.now()
    lastMs = Math.min(Math.max(now, lastMs + TURN_MS), now + LONGEST_TURN_MS)
    if (lastMs > now) await delay(lastMs - now)
  }
}

/**
 * `run` is told which line it is, and never rejects. `paceMs`: how far apart starts for a webhook that is not well have
 * to be. All that its endpoint leaves hanging would else end at one instant, again and again, and for that instant the
 * engine had no time for anybody else. For the rest see `createFairLine`.
 */
export function createStartLines(options: {
  concurrency: number
  hasRoom: (webhookId: string) => boolean
  paceMs: (webhookId: string) => number
  run: (delivery: DeliveryToStart, apart: boolean) => Promise<void>
}): StartLines {
  const { concurrency, hasRoom, paceMs, run } = options
  const pausing = new Set<string>()
  const well = createFairLine<DeliveryToStart>({
    concurrency,
    hasRoom,
    run: (delivery) => run(delivery, false),
  })
  const apart = createFairLine<DeliveryToStart>({
    concurrency: Math.min(concurrency, MOST_STARTS_APART),
    hasRoom: (webhookId) => !pausing.has(webhookId) && hasRoom(webhookId),
    run(delivery) {
      pause(delivery.webhookId)
      return run(delivery, true)
    },
  })

  function pause(webhookId: string): void {
    const forMs = paceMs(webhookId)
    if (forMs < SHORTEST_PAUSE_MS) return
    pausing.add(webhookId)
    setTimeout(() => {
      pausing.delete(webhookId)
      apart.look(webhookId)
    }, forMs).unref()
  }

  return {
    add: (delivery, isApart) => (isApart ? apart : well).add(delivery.webhookId, delivery),
    look(webhookId) {
      well.look(webhookId)
      apart.look(webhookId)
    },
    waiting: () => well.waiting() + apart.waiting(),
    ready: () => well.ready(),
    waitingOf: (webhookId) => well.waitingOf(webhookId) + apart.waitingOf(webhookId),
    inFlight: () => well.inFlight() + apart.inFlight(),
    drain: () => [...well.drain(), ...apart.drain()],
    async idle() {
      await Promise.all([well.idle(), apart.idle()])
    },
  }
}
