import type { DeliveryToStart } from '../../db/queries/events.ts'
import { findFirstAttempts } from '../../db/queries/leases.ts'
import { isTimeout, nextAttempt } from '../../domain/attempt-outcome.ts'
import type { AttemptEvent } from '../attempt/attempt-request.ts'
import { backlogRoom, hasBacklogRoom } from './backlog-room.ts'
import { createBackpressure } from './backpressure.ts'
import { createDeliveryStates } from './delivery-states.ts'
import { createInlineAttempts, type InlineAttemptDependencies, type InlineResult } from './inline-attempts.ts'
import { createLeases } from './leases.ts'
import {
  healthOf,
  isForHealthyEndpoint,
  routeDelivery,
  type FirstAttemptMode,
  type RoutedDelivery,
} from './route-delivery.ts'
import { createWorkflowStarts, type StartResult, type WorkflowStartDependencies } from './workflow-starts.ts'

/** Decides who makes the first attempt of each delivery that this process leases, and starts it. */
export type Dispatcher = {
  /** Takes deliveries that are leased to this process; returns at once. */
  start(deliveries: readonly DeliveryToStart[]): void
  /** Updates the state of a delivery by what its attempt reports. */
  onAttempt(event: AttemptEvent): void
  /** True while enough deliveries are queued, or Temporal is unavailable: then the sweeper takes fewer. */
  isBusy(): boolean
  /** True while no queued delivery could start now, few deliveries arrive, and Temporal is not behind. */
  isIdle(): boolean
  /** True when deliveries of healthy webhooks arrived in the last second. */
  hasRecentDeliveries(): boolean
  load(): DispatcherLoad
  /** Returns for each slow or failing webhook how many more of its deliveries may be taken. */
  rooms(): { webhookId: string; room: number }[]
  /** Releases what is queued, and returns when nothing is in flight. May be called again. */
  stop(): Promise<void>
}

/** Queued deliveries, workflow starts in flight, and inline attempts in flight. */
export type DispatcherLoad = { queued: number; startsInFlight: number; inlineInFlight: number }

/** Above this, further deliveries are released at once, and recovered later. */
const MAX_BACKLOG = 10_000

/** Above this many queued deliveries that could start now, the dispatcher is busy. */
const MAX_IDLE_BACKLOG = 200

/** After this time in Temporal, and in this interval, first attempts are checked: another process may have made them. */
const CHECK_INTERVAL_MS = 2_000

type DispatcherDependencies = Omit<InlineAttemptDependencies, 'onEnded' | 'leases'> &
  Omit<WorkflowStartDependencies, 'leases' | 'inTemporal' | 'onStarting' | 'onEnded'> & {
    mode: FirstAttemptMode
    leaseMs: number
    /** True while completed deliveries still have to get a workflow: new deliveries do not queue behind them. */
    isBackfillPending: () => boolean
  }

/**
 * Builds the dispatcher. Bounds: `concurrency` starts at once, MAX_BACKLOG deliveries, and per webhook as many first
 * attempts in Temporal as its endpoint takes at once, since others would be deferred. When the process dies its leases
 * expire, and the sweeper of another process takes the rows.
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
  const inline = createInlineAttempts({ ...dependencies, leases, onEnded: inlineEnded })
  const backpressure = createBackpressure({
    waiting: () => starts.waiting() + states.waitingInTemporal(),
    isTemporalUnavailable: () => starts.isPaused(),
  })
  const checking = setInterval(() => {
    void dropAttempted(states.inTemporalSince(performance.now() - CHECK_INTERVAL_MS))
  }, CHECK_INTERVAL_MS)
  let stopping = false

  function take(delivery: DeliveryToStart): void {
    const { deliveryId, readAtMs } = delivery
    const state = states.of(deliveryId)
    // The sweeper may recover a delivery whose outcome is still being recorded.
    if (state?.at === 'queued' || state?.at === 'inline') return
    if (stopping || states.count('queued') + states.count('inline') >= MAX_BACKLOG) return release(delivery)
    leases.add(deliveryId, readAtMs)
    if (isForHealthyEndpoint(delivery, endpoints)) backpressure.arrived()
    if (!tryInline(delivery)) queueStart(delivery)
  }

  /** Queues an inline attempt, and returns true, if the delivery is routed to one. */
  function tryInline(delivery: DeliveryToStart): boolean {
    const route = routeDelivery({
      mode,
      ...healthOf(delivery, endpoints),
      isTemporalBehind: backpressure.isTemporalBehind(),
      isBackfillPending: dependencies.isBackfillPending(),
    })
    if (stopping || route !== 'inline') return false
    states.set(delivery, { at: 'queued' })
    inline.add(delivery)
    return true
  }

  function queueStart(delivery: RoutedDelivery): void {
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
    if (after !== 'refused') metrics.startEnded('released')
  }

  function startEnded(delivery: DeliveryToStart, result: StartResult): void {
    switch (result) {
      case 'unhealthy':
        return queueStart(delivery)
      case 'started':
        // In a process without a worker no attempt reports its end.
        if (!makesAttempts) states.remove(delivery.deliveryId)
        return
      case 'refused':
      case 'paused':
        if (!tryInline(delivery)) release(delivery, result)
    }
  }

  /** Continues with a delivery whose inline attempt has ended, or was not made. */
  function inlineEnded(delivery: DeliveryToStart, result: InlineResult): void {
    if (result === 'stopping') return release(delivery)
    if (result === 'fault') return queueStart({ ...delivery, hasFault: true })
    if (result === 'unhealthy' || result.state === 'deferred') return queueStart(delivery)
    states.remove(delivery.deliveryId)
    leases.forget(delivery.deliveryId)
    metrics.startEnded('inline')
    if (result.state !== 'waiting') return
    starts.addRetry(delivery, nextAttempt(result), isTimeout(result.failureCode) ? 'slow' : 'retry')
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

  async function dropAttempted(attempts: { deliveryId: string; webhookId: string }[]): Promise<void> {
    if (attempts.length === 0) return
    try {
      const ids = attempts.map(({ deliveryId }) => deliveryId)
      const recorded = await findFirstAttempts(dataSource, ids)
      for (const { deliveryId, webhookId } of attempts) {
        const state = recorded.get(deliveryId)
        if (state === 'open') continue
        if (state === 'completed') endpoints.succeededElsewhere(webhookId)
        onAttempt({ type: 'ended', isInline: false, deliveryId, webhookId })
      }
    } catch (error) {
      const fields = { event: 'dispatcher.database_failed', what: 'check', err: error }
      logger.warn(fields, fields.event)
    }
  }

  function backlogOf(webhookId: string) {
    return {
      endpoint: endpoints.health(webhookId),
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
    isBusy: () => starts.ready() + inline.ready() > MAX_IDLE_BACKLOG || starts.isPaused(),
    isIdle: () => starts.ready() + inline.ready() === 0 && backpressure.isQuiet(),
    hasRecentDeliveries: () => backpressure.hasRecentDeliveries(),
    rooms() {
      const webhookIds = new Set([...starts.slowWebhooks(), ...states.slowInTemporal(), ...endpoints.slow()])
      return [...webhookIds].map((webhookId) => ({ webhookId, room: backlogRoom(backlogOf(webhookId)) }))
    },
    load: () => ({
      queued: states.count('queued'),
      startsInFlight: starts.inFlight(),
      inlineInFlight: states.count('inline'),
    }),
    async stop() {
      stopping = true
      clearInterval(checking)
      leases.close()
      for (const delivery of starts.drain()) release(delivery)
      await inline.stop()
      await starts.stop()
      await leases.flush()
    },
  }
}
