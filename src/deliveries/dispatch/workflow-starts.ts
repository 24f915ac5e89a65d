import { attemptOfRow, type AttemptQueue, type AttemptToStart } from '../../domain/attempt-outcome.ts'
import type { DeliveryLabel } from '../../domain/workflow-inputs.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { createRoundRobinQueue } from '../../round-robin-queue.ts'
import type { Shutdown } from '../../shutdown.ts'
import type { DeliveryWorkflows } from '../../temporal/workflows.ts'
import { isTemporalUnavailable } from '../../temporal/calls.ts'
import { createPace, type Pace, type Timers } from '../../timers.ts'
import type { Endpoints } from '../attempt/endpoint-concurrency.ts'
import { START_HOLD_MS, type SweptRow } from '../protocol/sweep.ts'
import type { HeldDelivery } from '../protocol/commit-events.ts'
import { MIN_BEHIND } from './backpressure.ts'
import type { RowBatch } from './delivery-rows.ts'
import { createTally } from '../../tally.ts'

/** The first attempts that this process has left to workflows, until they begin. */
export type FirstAttemptsInTemporal = {
  /** `isSlow`: on the task queue of slow endpoints, where waiting does not mean that Temporal is behind. */
  add(delivery: { deliveryId: string; webhookId: string }, isSlow: boolean): void
  remove(deliveryId: string): void
  /** Returns those of a webhook. */
  of(webhookId: string): number
  /** Returns the webhooks that have some. */
  webhookIds(): string[]
  /** Returns those that wait for a worker, without those of slow endpoints. */
  waiting(): number
  /** Returns those that wait for `ms` or longer. Removes those that are left to the sweeper. */
  since(ms: number): { deliveryId: string; webhookId: string }[]
}

/** By then the sweeper has checked the workflow of a delivery that did not begin. */
const TTL_MS = 60_000

export function createFirstAttemptsInTemporal(nowMs: () => number): FirstAttemptsInTemporal {
  const entries = new Map<string, { webhookId: string; isSlow: boolean; sinceMs: number }>()
  const perWebhook = createTally()
  let waiting = 0

  function count(webhookId: string, isSlow: boolean, by: 1 | -1): void {
    perWebhook.add(webhookId, by)
    if (!isSlow) waiting += by
  }

  function remove(deliveryId: string): void {
    const entry = entries.get(deliveryId)
    if (entry === undefined) return
    entries.delete(deliveryId)
    count(entry.webhookId, entry.isSlow, -1)
  }

  return {
    add({ deliveryId, webhookId }, isSlow) {
      remove(deliveryId)
      entries.set(deliveryId, { webhookId, isSlow, sinceMs: nowMs() })
      count(webhookId, isSlow, 1)
    },
    remove,
    of: (webhookId) => perWebhook.of(webhookId),
    webhookIds: () => perWebhook.keys(),
    waiting: () => waiting,
    since(ms) {
      const old: { deliveryId: string; webhookId: string }[] = []
      for (const [deliveryId, { webhookId, sinceMs }] of entries) {
        const ageMs = nowMs() - sinceMs
        if (ageMs >= TTL_MS) remove(deliveryId)
        else if (ageMs >= ms) old.push({ deliveryId, webhookId })
      }
      return old
    },
  }
}

/** Starts the workflows of deliveries. What finds no room, or no time, it drops: its row is taken up again. */
export type WorkflowStarts = {
  /** Queues the start where its endpoint has a slot soon, and a few of fast endpoints without one. */
  add(delivery: HeldDelivery): void
  /** Starts the workflow with the retry of an inline attempt, in a moment. */
  addRetry(delivery: DeliveryLabel, next: Required<AttemptToStart>, queue: AttemptQueue): void
  /** Tries the starts of an endpoint that may have a free slot now. */
  wake(webhookId: string): void
  /** Drops what has not started in time, and tries the others. */
  check(): void
  /** Returns the queued starts of fast endpoints. */
  queued(): number
  /** Returns how many starts there is room for: of all endpoints, of one, and of all that are slow. */
  room(): number
  roomOf(webhookId: string): number
  slowRoom(): number
  /** Removes and returns the queued starts of fast endpoints. */
  takeAll(): HeldDelivery[]
  inFlight(): number
  /** True while Temporal is unavailable, and shortly after. */
  isPaused(): boolean
  /** Gives back what is queued, and returns when no start is in flight. */
  stop(): Promise<void>
}

/** Delay of all starts after one that found Temporal unavailable. */
const PAUSE_DELAY_MS = 1_000

/** The pace of starts for endpoints that hang. */
const STUCK_INTERVAL_MS = 100

/** Starts for slow endpoints that wait for the pace, which is less than a row is held for, or are in flight. */
const MAX_SLOW = 16

/** Queued starts of fast endpoints, and of one of them: a few seconds of what a small Temporal takes. */
const MAX_QUEUED = 200
const MAX_QUEUED_OF_WEBHOOK = 100

/** Inline attempts that fail together: their workflows, started together, would leave Temporal no time for others. */
const RETRY_PACE = { intervalMs: 18, maxDelayMs: 600 }

/** Starts for retries that wait for their pace or are in flight. */
const MAX_RETRIES = 1_000

/** As many first attempts of an endpoint are in Temporal as get a slot within this time. */
const SLOT_WAIT_MS = 250

export type WorkflowStartDependencies = {
  workflows: Pick<DeliveryWorkflows, 'start'>
  endpoints: Endpoints
  logger: Logger
  metrics: Pick<Metrics, 'startEnded'>
  timers: Timers
  /** Starts in flight at once. */
  concurrency: number
  /** False while Temporal is unavailable, as far as this process knows. */
  isServing: () => boolean
  started: RowBatch<string>
  givenBack: RowBatch<SweptRow>
  inTemporal: FirstAttemptsInTemporal
  shutdown: Pick<Shutdown, 'stopping'>
  /** Called with a delivery whose start Temporal has refused. Its row is left to this process until `heldUntilMs`. */
  onRefused: (delivery: HeldDelivery) => void
}

export function createWorkflowStarts(dependencies: WorkflowStartDependencies): WorkflowStarts {
  const { workflows, endpoints, logger, metrics, timers, inTemporal } = dependencies
  const { shutdown } = dependencies
  const stuckPace = createPace({ intervalMs: STUCK_INTERVAL_MS, timers })
  const retryPace = createPace({ ...RETRY_PACE, timers })
  // Starts that wait for their pace, or are in flight.
  const slow = new Set<Promise<unknown>>()
  const retries = new Set<Promise<unknown>>()
  let pausedUntilMs = -Infinity
  let isStopping = false

  const queue = createRoundRobinQueue<HeldDelivery>({
    concurrency: dependencies.concurrency,
    hasRoom: (webhookId) => slots(webhookId) > 0,
    run: startFast,
  })

  /** Returns how many more first attempts of the webhook may be in Temporal, so that none is deferred. */
  function slots(webhookId: string): number {
    const free = isSlow(webhookId) ? endpoints.freeSlots(webhookId) : endpoints.room(webhookId, SLOT_WAIT_MS)
    return Math.max(0, free - inTemporal.of(webhookId))
  }

  async function startFast(delivery: HeldDelivery): Promise<void> {
    const { webhookId, attempts } = delivery
    const isUnknown = !endpoints.hasAnswered(webhookId)
    const fastQueue = attempts === 0 ? 'first' : 'retry'
    if (isSlow(webhookId)) drop(delivery)
    else await startHeld(delivery, isUnknown ? 'slow' : fastQueue)
  }

  async function startHeld(delivery: HeldDelivery, queueName: AttemptQueue): Promise<void> {
    const { deliveryId, webhookId } = delivery
    inTemporal.remove(deliveryId)
    if (isPaused() || isOver(delivery)) {
      drop(delivery)
      return
    }
    inTemporal.add(delivery, queueName === 'slow')
    if (await start(delivery, attemptOfRow(delivery), queueName)) return
    inTemporal.remove(deliveryId)
    dependencies.onRefused(delivery)
    queue.wake(webhookId)
  }

  function startPaced(group: Set<Promise<unknown>>, pace: Pace, run: () => Promise<unknown>): void {
    keepIn(group, pace.next(shutdown.stopping).then(run))
  }

  function keepIn(group: Set<Promise<unknown>>, start: Promise<unknown>): void {
    const started = start.finally(() => group.delete(started))
    group.add(started)
  }

  const isSlow = (webhookId: string): boolean => endpoints.health(webhookId) === 'slow'
  const isOver = ({ heldUntilMs }: HeldDelivery): boolean => timers.nowMs() >= heldUntilMs

  /** Any process may take the row up at once. One of many for an endpoint that hangs is not worth the write. */
  function drop(delivery: HeldDelivery): void {
    metrics.startEnded('released')
    const isWanted = isPaused() || !endpoints.isStuck(delivery.webhookId)
    if (isWanted && !isOver(delivery)) dependencies.givenBack.add(delivery)
  }

  async function start(delivery: DeliveryLabel, next: AttemptToStart, queue: AttemptQueue): Promise<boolean> {
    const { deliveryId } = delivery
    try {
      await workflows.start(delivery, next, { queue })
      dependencies.started.add(deliveryId)
      metrics.startEnded('started')
      return true
    } catch (error) {
      metrics.startEnded('refused')
      // One log line is enough while Temporal is unavailable.
      if (isPaused()) return false
      if (isTemporalUnavailable(error)) pausedUntilMs = timers.nowMs() + PAUSE_DELAY_MS
      logger.warn({ event: 'workflow_start.refused', deliveryId, err: error })
      return false
    }
  }

  function isPaused(): boolean {
    return isStopping || timers.nowMs() < pausedUntilMs || !dependencies.isServing()
  }

  return {
    add(delivery) {
      const { webhookId } = delivery
      const hasSlot = roomOf(webhookId) > 0
      // As many of fast endpoints wait for a slot as show that Temporal is behind.
      const hasRoom = isSlow(webhookId)
        ? slowRoom() > 0 && hasSlot
        : room() > 0 && (hasSlot || queue.size() < MIN_BEHIND)
      if (!hasRoom) drop(delivery)
      else if (isSlow(webhookId)) {
        inTemporal.add(delivery, true)
        const startSlow = (): Promise<void> => startHeld(delivery, 'slow')
        if (endpoints.isStuck(webhookId)) startPaced(slow, stuckPace, startSlow)
        else keepIn(slow, startSlow())
      } else queue.add(webhookId, delivery)
    },
    addRetry(delivery, next, queueName) {
      const pace = queueName === 'slow' ? stuckPace : retryPace
      if (isPaused() || retries.size >= MAX_RETRIES || pace.waitMs() > START_HOLD_MS) return
      const sinceMs = timers.nowMs()
      const rest = () => ({ ...next, waitMs: next.waitMs - (timers.nowMs() - sinceMs) })
      startPaced(retries, pace, () => start(delivery, rest(), queueName))
    },
    wake: (webhookId) => queue.wake(webhookId),
    check() {
      for (const delivery of queue.drain(isOver)) drop(delivery)
      queue.wake()
    },
    queued: () => queue.size(),
    room,
    roomOf,
    slowRoom,
    takeAll: () => queue.drain(),
    inFlight: () => queue.inFlight() + slow.size,
    isPaused,
    async stop() {
      isStopping = true
      for (const delivery of queue.drain()) drop(delivery)
      await Promise.all([queue.idle(), ...slow, ...retries])
    },
  }

  function room(): number {
    return isPaused() ? 0 : Math.max(0, MAX_QUEUED - queue.size())
  }

  function slowRoom(): number {
    return isPaused() ? 0 : Math.max(0, MAX_SLOW - slow.size)
  }

  function roomOf(webhookId: string): number {
    return Math.max(0, Math.min(MAX_QUEUED_OF_WEBHOOK, slots(webhookId)) - queue.sizeOf(webhookId))
  }
}
