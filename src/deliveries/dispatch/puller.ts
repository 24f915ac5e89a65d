import { MIN_PER_WEBHOOK, type UnstartedDelivery } from '../../db/queries/recovery.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Timers } from '../../timers.ts'
import type { Endpoints } from '../attempt/endpoint-registry.ts'
import { START_HOLD_MS } from '../lease-times.ts'
import { createPollLoop } from '../../poll-loop.ts'
import { hold, type DeliveryRows } from './delivery-rows.ts'
import type { WorkflowStarts } from './workflow-starts.ts'

/** Takes up deliveries without a workflow from their rows, as many as can begin soon. */
export type Puller = {
  start(): void
  /** Notes that a candidate waits for which this process had no room. */
  noteWaiting(): void
  /** Runs one pass. */
  runOnce(): Promise<void>
  stop(): Promise<void>
}

/** What begins deliveries: how many more it takes, of all webhooks and of one. */
export type Capacity = {
  room(): number
  roomOf(webhookId: string): number
}

/** Interval of the passes, and that while candidates wait for room. */
const INTERVAL_MS = 1_000
const WAITING_INTERVAL_MS = 100

/** Deliveries of one statement. */
const MAX_PULLED = 200

export type PullerDependencies = {
  rows: Pick<DeliveryRows, 'findUnstarted' | 'sweepLater'>
  endpoints: Pick<Endpoints, 'health' | 'slow' | 'inUse'>
  starts: WorkflowStarts
  reservations: Capacity
  timers: Timers
  logger: Logger
  /** True while this process makes first attempts without a workflow. */
  isInline: () => boolean
  /** Claims those for which there is room, and begins their attempts. Returns their ids. */
  claim: (candidates: readonly UnstartedDelivery[]) => Promise<ReadonlySet<string>>
}

export function createPuller(dependencies: PullerDependencies): Puller {
  const { rows, endpoints, starts, reservations, timers, isInline } = dependencies
  let isWaiting = false
  let pulledAtMs = -Infinity

  /** Returns whether more may wait. */
  async function pullFast(slow: readonly string[]): Promise<boolean> {
    const isHere = isInline()
    const capacity = isHere ? reservations : starts
    const limit = Math.min(MAX_PULLED, capacity.room())
    if (!isHere && starts.isPaused()) return false
    if (limit === 0) return true
    // One more than there is room for shows that more wait.
    const listed = [...new Set([...endpoints.inUse(), ...slow])].map((webhookId) => ({
      webhookId,
      room: endpoints.health(webhookId) === 'slow' ? 0 : Math.min(limit, capacity.roomOf(webhookId) + 1),
    }))
    const found = await rows.findUnstarted({ limit, rooms: listed, defaultRoom: limit })
    const taken = isHere ? (await dependencies.claim(found)).size : await startHeld(fitting(found, starts))
    return taken < found.length || found.length >= Math.min(limit, MIN_PER_WEBHOOK)
  }

  /** Pulls for free slots of slow endpoints: nothing of theirs is queued in memory. Returns whether more may wait. */
  async function pullSlow(slow: readonly string[]): Promise<boolean> {
    const limit = starts.slowRoom()
    const free = slow
      .map((webhookId) => ({ webhookId, room: Math.min(limit, starts.roomOf(webhookId)) }))
      .filter(({ room }) => room > 0)
    if (free.length === 0) return false
    const found = await rows.findUnstarted({ limit, rooms: free, defaultRoom: 0 })
    return (await startHeld(found)) > 0
  }

  /** Starts the workflows of candidates that no other process takes up meanwhile. Returns how many. */
  async function startHeld(candidates: readonly UnstartedDelivery[]): Promise<number> {
    const heldUntilMs = timers.nowMs() + START_HOLD_MS
    const held = await hold(rows, candidates, START_HOLD_MS)
    for (const delivery of held) starts.add({ ...delivery, heldUntilMs })
    return held.length
  }

  async function pull(): Promise<void> {
    pulledAtMs = timers.nowMs()
    isWaiting = false
    const slow = endpoints.slow()
    // Slow endpoints neither wait for a long read of the others, nor the others for theirs.
    const areMoreWaiting = await Promise.all([pullFast(slow), pullSlow(slow)])
    isWaiting ||= areMoreWaiting.includes(true)
  }

  const loop = createPollLoop({
    ...dependencies,
    intervalMs: WAITING_INTERVAL_MS,
    async run() {
      if (isWaiting || timers.nowMs() >= pulledAtMs + INTERVAL_MS) await pull()
      return false
    },
    event: 'dispatcher.database_failed',
  })

  return {
    start: () => loop.start(),
    noteWaiting: () => void (isWaiting = true),
    runOnce: pull,
    stop: () => loop.stop(),
  }
}

/** Returns those of the deliveries for which there is room, in order. */
export function fitting<Item extends { webhookId: string }>(
  deliveries: readonly Item[],
  capacity: Capacity,
): Item[] {
  const counts = new Map<string, number>()
  let left = capacity.room()
  return deliveries.filter(({ webhookId }) => {
    const count = counts.get(webhookId) ?? 0
    if (left <= 0 || count >= capacity.roomOf(webhookId)) return false
    counts.set(webhookId, count + 1)
    left--
    return true
  })
}
