import type { DeliveryToStart } from '../db/queries/events.ts'
import { findUnattempted } from '../db/queries/keeping.ts'
import type { AttemptOutcome } from '../domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../domain/retry-schedule.ts'
import type { Metrics } from '../metrics.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { isEngineAway } from '../temporal/engine-away.ts'
import type { HandedOver } from './handed-over.ts'
import { createKeptRows } from './kept-rows.ts'
import { createInlineAttempts, healthOf, type InlineAttemptDependencies } from './inline-attempts.ts'
import { backlogRoom, hasBacklogRoom } from './backlog-room.ts'
import { createBackpressure } from './backpressure.ts'
import { createRoundRobinQueue } from './round-robin-queue.ts'
import { isHealthy, routeDelivery, type FirstAttemptMode } from './route-delivery.ts'
import { createStaggeredStarts } from './staggered-starts.ts'

/** Begins with each delivery that this process committed or took from the sweep. */
export type Starter = {
  /** Takes deliveries that are leased to this process; returns at once. */
  start(deliveries: readonly DeliveryToStart[]): void
  /** True while it has enough to do, or the engine is away: then nothing more should be taken for it. */
  isBusy(): boolean
  /** True while nothing waits that could be begun with now, little comes, and the engine is not behind. */
  isIdle(): boolean
  /** Deliveries of healthy webhooks came in the last second. */
  isInUse(): boolean
  load(): StarterLoad
  /** For each webhook known to be slow or failing, how many more of its deliveries may be taken. */
  rooms(): WebhookRoom[]
  /** Gives back what has not been begun, and returns when nothing is under way. Called again, what came meanwhile. */
  stop(): Promise<void>
}

type WebhookRoom = { webhookId: string; room: number }

/** Deliveries that wait for their start, starts under way, and first attempts that this process makes itself. */
export type StarterLoad = { waiting: number; inFlight: number; attempting: number }

/** Above this many deliveries one more goes straight back to its row, and comes again with the sweep. */
const MAX_BACKLOG = 10_000

/** Above this many that could go now it asks for no more work. */
const BUSY_BACKLOG = 200

/** After a refused start the engine is left alone for so long. */
const PAUSE_MS = 1_000

/** Workflow starts of slow and failing webhooks under way at once: they have time. */
const SLOW_CONCURRENCY = 4

/** How often it looks for deliveries whose endpoint is not healthy any more. */
const CHECK_INTERVAL_MS = 250

/** What was handed to the engine so long ago may have been attempted by another process. */
const ASK_AFTER_MS = 2_000

type StarterDependencies = Omit<InlineAttemptDependencies, 'handlers' | 'leasedForMs'> & {
  workflows: DeliveryWorkflows
  handedOver: HandedOver
  metrics: Metrics
  mode: FirstAttemptMode
  /** Workflow starts under way at once. */
  concurrency: number
  /** False in a process without a worker: it leaves all attempts to others. */
  makesAttempts: boolean
  leaseMs: number
  /** False while Temporal cannot be reached from here, as far as is known. */
  isServing: () => boolean
  /** Workflows of completed deliveries are still to be started: fresh deliveries do not wait behind them. */
  isBackfillOwed: () => boolean
}

/**
 * Bounded: `concurrency` starts at once, MAX_BACKLOG deliveries, and of one webhook as many first attempts with the
 * engine as its endpoint takes at once: an attempt that would be deferred need not be started yet. Nothing is lost with this process: its leases
 * run out and another one's sweep takes the rows.
 */
export function createStarter(dependencies: StarterDependencies): Starter {
  const { dataSource, workflows, handedOver, endpoints, logger, metrics, makesAttempts } = dependencies
  const mode = makesAttempts ? dependencies.mode : 'workflow'
  const rows = createKeptRows({ ...dependencies, owner: dependencies.processId })
  let stopping = false
  let pausedUntilMs = -Infinity

  const createStarts = (queue: 'healthy' | 'slow', concurrency: number) =>
    createRoundRobinQueue<DeliveryToStart>({
      concurrency,
      hasRoom: (webhookId) => !makesAttempts || handedOver.of(webhookId) < endpoints.limit(webhookId),
      run: (delivery) => handOver(delivery, queue),
    })
  // Slow and failing webhooks have a queue of their own.
  const starts = {
    healthy: createStarts('healthy', dependencies.concurrency),
    slow: createStarts('slow', Math.min(SLOW_CONCURRENCY, dependencies.concurrency)),
  }
  const inline = createInlineAttempts({
    ...dependencies,
    leasedForMs: (deliveryId) => rows.heldForMs(deliveryId),
    handlers: { attempted, unsuited: queue, returned: (delivery) => putBack(delivery) },
  })
  const queues = [starts.healthy, starts.slow]
  const wake = (webhookId: string): void => [...queues, inline].forEach((queue) => queue.wake(webhookId))
  handedOver.onEnded(wake)
  endpoints.onRelease(wake)
  const backpressure = createBackpressure({
    waiting: () => starts.healthy.size() + handedOver.notBegun(),
    isAway: isPaused,
  })
  const retries = createStaggeredStarts()
  const asking = setInterval(() => {
    void forgetAttempted(handedOver.olderThan(ASK_AFTER_MS))
  }, ASK_AFTER_MS)
  const checking = setInterval(moveUnhealthy, CHECK_INTERVAL_MS)

  /** Of what was handed to the engine, another process may have made the attempt. */
  async function forgetAttempted(ids: string[]): Promise<void> {
    if (ids.length === 0) return
    try {
      const open = new Set(await findUnattempted(dataSource, ids))
      for (const id of ids) if (!open.has(id)) handedOver.ended(id)
    } catch (error) {
      logger.warn({ event: 'starter.database', what: 'ask', err: error }, 'starter.database')
    }
  }

  /** Deliveries of an endpoint that became slow, or fails, do not wait among healthy ones. */
  function moveUnhealthy(): void {
    for (const [webhookId, next] of starts.healthy.heads())
      if (!isHealthy(healthOf(next, endpoints)))
        for (const delivery of starts.healthy.drain(webhookId)) queue(delivery)
  }

  function take(delivery: DeliveryToStart): void {
    // The sweep may find one whose outcome could not be recorded yet.
    if (rows.has(delivery.deliveryId)) return
    if (stopping || rows.size() >= MAX_BACKLOG) return putBack(delivery)
    rows.keep(delivery.deliveryId, delivery.readAtMs)
    if (isHealthy(healthOf(delivery, endpoints))) backpressure.arrived()
    if (routeOf(delivery) === 'inline') inline.add(delivery)
    else queue(delivery)
  }

  function routeOf(delivery: DeliveryToStart): 'inline' | 'workflow' {
    return routeDelivery({
      mode,
      ...healthOf(delivery, endpoints),
      isTemporalBehind: backpressure.isTemporalBehind(),
      isBackfillOwed: dependencies.isBackfillOwed(),
    })
  }

  function isPaused(): boolean {
    return performance.now() < pausedUntilMs || !dependencies.isServing()
  }

  function queue(delivery: DeliveryToStart): void {
    const { webhookId } = delivery
    const isSlow = !isHealthy(healthOf(delivery, endpoints))
    if (isSlow && !hasBacklogRoom(backlogOf(webhookId))) return putBack(delivery)
    // The queue may be long, and the workflow reads the payload itself.
    starts[isSlow ? 'slow' : 'healthy'].add(webhookId, { ...delivery, fresh: null })
  }

  function backlogOf(webhookId: string) {
    return {
      endpoint: endpoints.health(webhookId, performance.now()),
      limit: endpoints.limit(webhookId),
      freeSlots: endpoints.freeSlots(webhookId),
      queued: starts.slow.sizeOf(webhookId),
      withTemporal: handedOver.of(webhookId),
    }
  }

  function putBack({ deliveryId }: DeliveryToStart): void {
    rows.giveBack(deliveryId)
    metrics.startEnded('returned')
  }

  async function handOver(delivery: DeliveryToStart, from: 'healthy' | 'slow'): Promise<void> {
    // Its webhook was healthy when it came.
    if (from === 'healthy' && !isHealthy(healthOf(delivery, endpoints))) {
      queue(delivery)
      return
    }
    if (isPaused() && takeOver(delivery)) return
    if (stopping || isPaused()) {
      putBack(delivery)
      return
    }
    const { deliveryId, webhookId, readAtMs } = delivery
    if (makesAttempts) handedOver.add(webhookId, deliveryId, from === 'slow')
    // An endpoint that never answered may hang, and must not occupy the slots of healthy ones.
    const isUnproven = makesAttempts && endpoints.health(webhookId, readAtMs) === 'unproven'
    if (await isStarted(delivery, { number: 1, dueAtMs: null }, from === 'slow' || isUnproven)) return
    handedOver.ended(deliveryId)
    if (!takeOver(delivery)) rows.giveBack(deliveryId)
  }

  /** What the engine does not take is made here, where it may be. */
  function takeOver(delivery: DeliveryToStart): boolean {
    const isTaken = !stopping && routeOf(delivery) === 'inline'
    if (isTaken) inline.add(delivery)
    return isTaken
  }

  async function isStarted(
    delivery: DeliveryToStart,
    next: { number: number; dueAtMs: number | null },
    apart: boolean,
  ): Promise<boolean> {
    const { deliveryId } = delivery
    try {
      await workflows.start(delivery, next, { again: false, apart })
      rows.started(deliveryId)
      metrics.startEnded('started')
      return true
    } catch (error) {
      metrics.startEnded('refused')
      // While the engine is away the others need not each find that out, nor fill the log.
      if (isPaused()) return false
      if (isEngineAway(error)) pausedUntilMs = performance.now() + PAUSE_MS
      logger.warn({ event: 'starter.refused', deliveryId, err: error }, 'starter.refused')
      return false
    }
  }

  /** Its first attempt was made here. A delivery that waits for its second gets its workflow now. */
  function attempted(delivery: DeliveryToStart, outcome: AttemptOutcome): void {
    if (outcome.state === 'deferred') {
      queue(delivery)
      return
    }
    rows.letGo(delivery.deliveryId)
    metrics.startEnded('attempted')
    if (outcome.state !== 'waiting') return
    const { attempts, endedAtMs } = outcome
    const dueAtMs = outcome.immediately ? null : endedAtMs + (waitAfterAttempt(attempts) ?? 0)
    const next = { number: attempts + 1, dueAtMs }
    // What cannot be started now is started by the sweep, some seconds after its time.
    if (!isPaused()) retries.add(() => isStarted(delivery, next, false))
  }

  return {
    start(deliveries) {
      for (const delivery of deliveries) take(delivery)
    },
    isBusy: () => starts.healthy.size() + inline.load().waiting > BUSY_BACKLOG || isPaused(),
    isIdle: () => starts.healthy.size() + inline.load().waiting === 0 && backpressure.isQuiet(),
    rooms() {
      const webhookIds = new Set([
        ...starts.slow.heads().map(([webhookId]) => webhookId),
        ...handedOver.apart(),
        ...endpoints.slow(),
      ])
      return [...webhookIds].map((webhookId) => ({ webhookId, room: backlogRoom(backlogOf(webhookId)) }))
    },
    isInUse: () => backpressure.isInUse(),
    load() {
      const { waiting, inFlight: attempting } = inline.load()
      const { healthy, slow } = starts
      return {
        waiting: healthy.size() + slow.size() + waiting,
        inFlight: healthy.inFlight() + slow.inFlight(),
        attempting,
      }
    },
    async stop() {
      stopping = true
      clearInterval(asking)
      clearInterval(checking)
      rows.close()
      for (const delivery of queues.flatMap((queue) => queue.drain())) putBack(delivery)
      await Promise.all([inline.stop(), starts.healthy.idle(), starts.slow.idle()])
      await retries.idle()
      await rows.flush()
    },
  }
}
