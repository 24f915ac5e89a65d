import type { UnstartedDelivery } from '../../db/queries/due-deliveries.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Timers } from '../../timers.ts'
import type { Endpoints } from '../attempt/endpoint-concurrency.ts'
import { START_HOLD_MS } from '../protocol/sweep.ts'
import { createPollLoop, type PollLoop } from '../../poll-loop.ts'
import { hold, type DeliveryRows } from './delivery-rows.ts'
import type { FirstAttemptsInTemporal, WorkflowStarts } from './workflow-starts.ts'

/** Takes up deliveries without a workflow from their rows, as many as can begin soon. */
export type Puller = Pick<PollLoop, 'start' | 'stop'> & {
  /** Runs one pass. */
  runOnce(): Promise<void>
}

/** What begins deliveries: how many more it takes, of all webhooks and of one. */
export type Capacity = {
  room(): number
  roomOf(webhookId: string): number
}

/** Interval of the passes: so long a delivery waits that an API without a worker has committed. */
const INTERVAL_MS = 100

/** Deliveries of one statement. */
const MAX_PULLED = 200

export type PullerDependencies = {
  rows: Pick<DeliveryRows, 'findUnstarted' | 'sweepLater'>
  endpoints: Pick<Endpoints, 'health' | 'slow' | 'inUse'>
  starts: WorkflowStarts
  inTemporal: Pick<FirstAttemptsInTemporal, 'webhookIds'>
  reservations: Capacity
  timers: Timers
  logger: Logger
  /** True while this process makes first attempts without a workflow. */
  isInline: () => boolean
  /** Claims those for which there is room, and begins their attempts. Returns their ids. */
  claim: (candidates: readonly UnstartedDelivery[]) => Promise<ReadonlySet<string>>
  /** Called with how many deliveries of fast endpoints were taken up. */
  onTaken: (count: number) => void
}

export function createPuller(dependencies: PullerDependencies): Puller {
  const { rows, endpoints, starts, inTemporal, reservations, timers, isInline } = dependencies

  async function pullFast(slow: readonly string[]): Promise<void> {
    const isHere = isInline()
    const capacity = isHere ? reservations : starts
    const limit = Math.min(MAX_PULLED, capacity.room())
    if (limit === 0) return
    const known = new Set([...endpoints.inUse(), ...inTemporal.webhookIds(), ...slow])
    const listed = [...known].map((webhookId) => ({
      webhookId,
      room: endpoints.health(webhookId) === 'slow' ? 0 : Math.min(limit, capacity.roomOf(webhookId)),
    }))
    const found = await rows.findUnstarted({ limit, rooms: listed, defaultRoom: limit })
    const taken = isHere
      ? (await dependencies.claim(found)).size
      : await startHeld(limitToRoom(found, starts))
    dependencies.onTaken(taken)
  }

  /** Pulls for free slots of slow endpoints: nothing of theirs is queued in memory. */
  async function pullSlow(slow: readonly string[]): Promise<void> {
    const limit = starts.slowRoom()
    const free = slow
      .map((webhookId) => ({ webhookId, room: Math.min(limit, starts.roomOf(webhookId)) }))
      .filter(({ room }) => room > 0)
    if (free.length === 0) return
    await startHeld(await rows.findUnstarted({ limit, rooms: free, defaultRoom: 0 }))
  }

  /** Starts the workflows of candidates that no other process takes up meanwhile. Returns how many. */
  async function startHeld(candidates: readonly UnstartedDelivery[]): Promise<number> {
    const heldUntilMs = timers.nowMs() + START_HOLD_MS
    const held = await hold(rows, candidates, START_HOLD_MS)
    for (const delivery of held) starts.add({ ...delivery, heldUntilMs })
    return held.length
  }

  async function pull(): Promise<void> {
    const slow = endpoints.slow()
    // Slow endpoints neither wait for a long read of the others, nor the others for theirs.
    await Promise.all([pullFast(slow), pullSlow(slow)])
  }

  const loop = createPollLoop({
    ...dependencies,
    intervalMs: INTERVAL_MS,
    async run() {
      await pull()
      return false
    },
    event: 'dispatcher.database_failed',
  })

  return { ...loop, runOnce: pull }
}

/** Returns those of the deliveries for which there is room, in order. */
export function limitToRoom<Item extends { webhookId: string }>(
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
