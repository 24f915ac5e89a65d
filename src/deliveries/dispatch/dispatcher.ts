import type { DeliveryToStart } from '../../db/queries/events.ts'
import { findFirstAttempts } from '../../db/queries/keeping.ts'
import { isTimeout } from '../../domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../../domain/retry-schedule.ts'
import type { AttemptEvent } from '../attempt/attempt-request.ts'
import { backlogRoom, hasBacklogRoom } from './backlog-room.ts'
import { createBackpressure } from './backpressure.ts'
import { createDeliveryStates } from './delivery-states.ts'
import { createInlineAttempts, type InlineAttemptDependencies, type InlineResult } from './inline-attempts.ts'
import { createLeases } from './leases.ts'
import { healthOf, isForHealthyEndpoint, routeDelivery, type FirstAttemptMode } from './route-delivery.ts'
import { createWorkflowStarts, type StartResult, type WorkflowStartDependencies } from './workflow-starts.ts'

/** Decides who makes the first attempt of each delivery that this process leases, and has it made. */
export type Dispatcher = {
  /** Takes deliveries that are leased to this process; returns at once. */
  start(deliveries: readonly DeliveryToStart[]): void
  /** Notes what an attempt of this process reports. */
  onAttempt(event: AttemptEvent): void
  /** True while it has enough to do, or Temporal is away: then nothing more should be taken for it. */
  isBusy(): boolean
  /** True while nothing is queued that could be started now, little comes, and Temporal is not behind. */
  isIdle(): boolean
  /** Deliveries of healthy webhooks came in the last second. */
  isInUse(): boolean
  load(): DispatcherLoad
  /** For each webhook known to be slow or failing, how many more of its deliveries may be taken. */
  rooms(): WebhookRoom[]
  /** Releases what has not begun, and returns when nothing is in flight. Called again, what came meanwhile. */
  stop(): Promise<void>
}

type WebhookRoom = { webhookId: string; room: number }

/** Deliveries that are queued, workflow starts in flight, and inline attempts in flight. */
export type DispatcherLoad = { waiting: number; inFlight: number; attempting: number }

/** Above this many deliveries in hand one more is released at once, and recovered later. */
const MAX_BACKLOG = 10_000

/** Above this many queued deliveries that could go now it asks for no more. */
const BUSY_BACKLOG = 200

/** First attempts that are in Temporal for so long may have been made by another process. */
const ASK_AFTER_MS = 2_000

type DispatcherDependencies = Omit<InlineAttemptDependencies, 'onEnded' | 'leasedForMs'> &
  Omit<WorkflowStartDependencies, 'leases' | 'inTemporal' | 'onStarting' | 'onEnded'> & {
    mode: FirstAttemptMode
    leaseMs: number
    /** Workflows of completed deliveries are still to be started: fresh deliveries do not wait behind them. */
    isBackfillOwed: () => boolean
  }

/**
 * Bounded: `concurrency` starts at once, MAX_BACKLOG deliveries in hand, and of one webhook as many first attempts in
 * Temporal as its endpoint takes at once: an attempt that would be deferred need not be started yet. Nothing is lost
 * with this process: its leases expire, and the sweeper of another process takes the rows.
 */
export function createDispatcher(dependencies: DispatcherDependencies): Dispatcher {
  const { dataSource, endpoints, logger, metrics, makesAttempts } = dependencies
  const mode = makesAttempts ? dependencies.mode : 'workflow'
  const states = createDeliveryStates()
  const leases = createLeases({ ...dependencies, owner: dependencies.processId })
  const starts = createWorkflowStarts({
    ...dependencies,
    leases,
    inTemporal: (webhookId) => states.inTemporal(webhookId),
    onStarting: (delivery, isSlow) =>
      states.set(delivery, { at: 'in_temporal', sinceMs: performance.now(), isBegun: false, isSlow }),
    onEnded: startEnded,
  })
  const inline = createInlineAttempts({
    ...dependencies,
    leasedForMs: (deliveryId) => leases.heldForMs(deliveryId),
    onEnded: inlineEnded,
  })
  const backpressure = createBackpressure({
    waiting: () => starts.waiting() + states.waitingInTemporal(),
    isAway: () => starts.isPaused(),
  })
  const asking = setInterval(() => {
    void forgetAttempted(states.inTemporalSince(performance.now() - ASK_AFTER_MS))
  }, ASK_AFTER_MS)
  let stopping = false

  function take(delivery: DeliveryToStart): void {
    const { deliveryId, readAtMs } = delivery
    const state = states.of(deliveryId)
    // Recovery may find one whose outcome could not be recorded yet.
    if (state?.at === 'queued' || state?.at === 'inline') return
    if (stopping || states.count('queued') + states.count('inline') >= MAX_BACKLOG) return release(delivery)
    leases.hold(deliveryId, readAtMs)
    if (isForHealthyEndpoint(delivery, endpoints)) backpressure.arrived()
    if (!tryInline(delivery)) queueStart(delivery)
  }

  /** Queues an inline attempt and returns true where the delivery is to have one. */
  function tryInline(delivery: DeliveryToStart): boolean {
    const route = routeDelivery({
      mode,
      ...healthOf(delivery, endpoints),
      isTemporalBehind: backpressure.isTemporalBehind(),
      isBackfillOwed: dependencies.isBackfillOwed(),
    })
    if (stopping || route !== 'inline') return false
    states.set(delivery, { at: 'queued' })
    inline.add(delivery)
    return true
  }

  function queueStart(delivery: DeliveryToStart): void {
    const { webhookId } = delivery
    const isSlow = !isForHealthyEndpoint(delivery, endpoints)
    if (stopping || (isSlow && !hasBacklogRoom(backlogOf(webhookId)))) return release(delivery)
    states.set(delivery, { at: 'queued' })
    starts.add(delivery, isSlow)
  }

  function release({ deliveryId, webhookId }: DeliveryToStart, after?: StartResult): void {
    const wasInTemporal = states.of(deliveryId)?.at === 'in_temporal'
    states.remove(deliveryId)
    if (wasInTemporal) starts.wake(webhookId)
    leases.release(deliveryId)
    // A refused start has been counted as such.
    if (after !== 'refused') metrics.startEnded('returned')
  }

  function startEnded(delivery: DeliveryToStart, result: StartResult): void {
    switch (result) {
      case 'unsuited':
        return queueStart(delivery)
      case 'started':
        // This process does not learn when the attempt ends.
        if (!makesAttempts) states.remove(delivery.deliveryId)
        return
      case 'refused':
      case 'paused':
        if (!tryInline(delivery)) release(delivery, result)
    }
  }

  /** Goes on with a delivery whose inline attempt has an outcome, or was not made. */
  function inlineEnded(delivery: DeliveryToStart, result: InlineResult): void {
    if (result === 'stopping') return release(delivery)
    // As for an open incident, only a workflow makes it again, with pauses.
    if (result === 'fault') return queueStart({ ...delivery, hasOpenIncident: true })
    if (result === 'unsuited' || result.state === 'deferred') return queueStart(delivery)
    states.remove(delivery.deliveryId)
    leases.forget(delivery.deliveryId)
    metrics.startEnded('attempted')
    if (result.state !== 'waiting') return
    const { attempts, endedAtMs, immediately, failureCode } = result
    const dueAtMs = immediately ? null : endedAtMs + (waitAfterAttempt(attempts) ?? 0)
    starts.addRetry(delivery, { number: attempts + 1, dueAtMs }, isTimeout(failureCode) ? 'slow' : 'retry')
  }

  function onAttempt({ type, isInline, webhookId, deliveryId }: AttemptEvent): void {
    const state = states.of(deliveryId)
    if (type === 'begun' && isInline) states.set({ deliveryId, webhookId }, { at: 'inline' })
    else if (state?.at === 'in_temporal') {
      if (type === 'begun') states.set({ deliveryId, webhookId }, { ...state, isBegun: true })
      if (type === 'ended') states.remove(deliveryId)
    }
    if (type === 'begun') return
    starts.wake(webhookId)
    inline.wake(webhookId)
  }

  async function forgetAttempted(attempts: { deliveryId: string; webhookId: string }[]): Promise<void> {
    if (attempts.length === 0) return
    try {
      const ids = attempts.map(({ deliveryId }) => deliveryId)
      const standing = await findFirstAttempts(dataSource, ids)
      for (const { deliveryId, webhookId } of attempts) {
        const state = standing.get(deliveryId)
        if (state === 'open') continue
        if (state === 'completed') endpoints.succeededElsewhere(webhookId)
        onAttempt({ type: 'ended', isInline: false, deliveryId, webhookId })
      }
    } catch (error) {
      logger.warn({ event: 'starter.database', what: 'ask', err: error }, 'starter.database')
    }
  }

  function backlogOf(webhookId: string) {
    return {
      endpoint: endpoints.health(webhookId, performance.now()),
      limit: endpoints.limit(webhookId),
      freeSlots: endpoints.freeSlots(webhookId),
      queued: starts.slowWaiting(webhookId),
      inTemporal: states.inTemporal(webhookId),
    }
  }

  return {
    start(deliveries) {
      for (const delivery of deliveries) take(delivery)
    },
    onAttempt,
    isBusy: () => starts.ready() + inline.ready() > BUSY_BACKLOG || starts.isPaused(),
    isIdle: () => starts.ready() + inline.ready() === 0 && backpressure.isQuiet(),
    isInUse: () => backpressure.isInUse(),
    rooms() {
      const webhookIds = new Set([...starts.slowWebhooks(), ...states.slowInTemporal(), ...endpoints.slow()])
      return [...webhookIds].map((webhookId) => ({ webhookId, room: backlogRoom(backlogOf(webhookId)) }))
    },
    load: () => ({
      waiting: states.count('queued'),
      inFlight: starts.inFlight(),
      attempting: states.count('inline'),
    }),
    async stop() {
      stopping = true
      clearInterval(asking)
      leases.close()
      for (const delivery of starts.drain()) release(delivery)
      await inline.stop()
      await starts.stop()
      await leases.flush()
    },
  }
}
