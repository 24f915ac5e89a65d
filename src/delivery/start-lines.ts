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

/** Starts that have time until an instant. */
export type PacedStarts = {
  /** Returns at once; `start` never rejects. */
  add(start: () => Promise<unknown>): void
  /** Returns when none is left. */
  idle(): Promise<void>
}

/**
 * What hangs ends together, and begun together its workflows would leave the engine no time for anybody else. So they are
 * begun in turn: the first at once, and none later than after LONGEST_TURN_MS.
 */
export function createPacedStarts(): PacedStarts {
  const underWay = new Set<Promise<unknown>>()
  let lastMs = -Infinity
  return {
    add(start) {
      const now = performance.now()
      lastMs = Math.min(Math.max(now, lastMs + TURN_MS), now + LONGEST_TURN_MS)
      const turn = lastMs > now ? delay(lastMs - now) : Promise.resolve()
      const running = turn.then(start).finally(() => underWay.delete(running))
      underWay.add(running)
    },
    async idle() {
      await Promise.all(underWay)
    },
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
