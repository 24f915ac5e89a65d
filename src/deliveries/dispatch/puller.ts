import { MIN_PER_WEBHOOK, type UnstartedDelivery } from '../../db/queries/recovery.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Timers } from '../../timers.ts'
import type { Endpoints } from '../attempt/endpoint-registry.ts'
import { START_HOLD_MS } from '../lease-times.ts'
import { createPollLoop } from '../recovery/poll-loop.ts'
import { hold, type DeliveryRows } from './delivery-rows.ts'
import type { WorkflowStarts } from './workflow-starts.ts'

/** Takes up deliveries without a workflow from their rows, as many as can begin soon. */
export type Puller = {
  start(): void
  /** Notes that a candidate of the webhook waits for which this process had no room. */
  noteWaiting(webhookId: string): void
  /** Pulls at once where candidates wait, and half of the room is free: that of all endpoints, or of this one. */
  wake(webhookId: string): void
  /** Runs one pass. */
  runOnce(): Promise<void>
  stop(): Promise<void>
}

/** What begins deliveries: how many more it takes, and how many are queued; in all, and of one webhook. */
export type Capacity = {
  room(): number
  roomOf(webhookId: string): number
  queued(): number
  queuedOf(webhookId: string): number
}

/** A wake-up that is lost costs no more. */
const INTERVAL_MS = 1_000

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
  // Candidates wait: of many webhooks, or of these.
  let areMany = false
  let waiting = new Set<string>()

  const capacity = (): Capacity => (isInline() ? reservations : starts)
  const isSlow = (webhookId: string): boolean => endpoints.health(webhookId) === 'slow'
  const isManyRoom = (): boolean => areMany && capacity().room() > capacity().queued()

  function isRoomOf(webhookId: string): boolean {
    if (!waiting.has(webhookId)) return false
    if (isSlow(webhookId)) return starts.slowRoom() > 0 && starts.roomOf(webhookId) > 0
    return capacity().roomOf(webhookId) > capacity().queuedOf(webhookId)
  }

  async function pullFast(): Promise<boolean> {
    const limit = Math.min(MAX_PULLED, capacity().room())
    if (limit === 0 || (!isInline() && starts.isPaused())) return false
    const rooms = [...new Set([...endpoints.inUse(), ...endpoints.slow()])].map((webhookId) => ({
      webhookId,
      room: isSlow(webhookId) ? 0 : Math.min(limit, capacity().roomOf(webhookId)),
    }))
    const found = await rows.findUnstarted({ limit, rooms, defaultRoom: limit })
    areMany = found.length === limit
    const { fitting, full } = fit(found)
    const withoutRoom = rooms.filter(({ webhookId, room }) => room === 0 && waiting.has(webhookId))
    waiting = new Set([...withoutRoom.map(({ webhookId }) => webhookId), ...full])
    const taken = isInline() ? (await dependencies.claim(fitting)).size : await startHeld(fitting)
    return taken > 0 && (isManyRoom() || [...full].some(isRoomOf))
  }

  /** Pulls for free slots of slow endpoints: nothing of theirs is queued in memory. */
  async function pullSlow(): Promise<void> {
    const limit = starts.slowRoom()
    const rooms = endpoints
      .slow()
      .map((webhookId) => ({ webhookId, room: Math.min(limit, starts.roomOf(webhookId)) }))
      .filter(({ room }) => room > 0)
    if (rooms.length === 0) return
    const found = await rows.findUnstarted({ limit, rooms, defaultRoom: 0 })
    for (const { webhookId } of found) waiting.add(webhookId)
    await startHeld(found)
  }

  /** Returns the candidates for which their endpoints have room, and the webhooks of which more may wait. */
  function fit(found: readonly UnstartedDelivery[]): { fitting: UnstartedDelivery[]; full: Set<string> } {
    const left = new Map<string, number>()
    const counts = new Map<string, number>()
    const full = new Set<string>()
    const fitting = found.filter(({ webhookId }) => {
      const room = left.get(webhookId) ?? (isSlow(webhookId) ? 0 : capacity().roomOf(webhookId))
      const count = (counts.get(webhookId) ?? 0) + 1
      left.set(webhookId, room - 1)
      counts.set(webhookId, count)
      if (room <= 1 || count >= MIN_PER_WEBHOOK) full.add(webhookId)
      return room > 0
    })
    return { fitting, full }
  }

  /** Starts the workflows of candidates that no other process takes up meanwhile. Returns how many. */
  async function startHeld(candidates: readonly UnstartedDelivery[]): Promise<number> {
    const heldUntilMs = timers.nowMs() + START_HOLD_MS
    const held = await hold(rows, candidates, START_HOLD_MS)
    for (const delivery of held) starts.add({ ...delivery, heldUntilMs })
    return held.length
  }

  const loop = createPollLoop({
    ...dependencies,
    intervalMs: INTERVAL_MS,
    run: pull,
    event: 'dispatcher.database_failed',
  })

  async function pull(): Promise<boolean> {
    // Slow endpoints neither wait for a long read of the others, nor the others for theirs.
    const [isMoreWaiting] = await Promise.all([pullFast(), pullSlow()])
    return isMoreWaiting
  }

  return {
    start: () => loop.start(),
    noteWaiting(webhookId) {
      waiting.add(webhookId)
      if (isRoomOf(webhookId)) loop.wake()
    },
    wake(webhookId) {
      if (isManyRoom() || isRoomOf(webhookId)) loop.wake()
    },
    async runOnce() {
      await pull()
    },
    stop: () => loop.stop(),
  }
}
