import type { DeliveryToStart } from '../db/queries/events.ts'
import { findUnattempted } from '../db/queries/keeping.ts'
import type { AttemptOutcome } from '../domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../domain/retry-schedule.ts'
import type { Metrics } from '../metrics.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { isEngineAway } from '../temporal/engine-away.ts'
import { createFirstAttempts, isWell, type FirstAttemptDependencies } from './first-attempts.ts'
import type { HandedOver } from './handed-over.ts'
import { createKeptRows } from './kept-rows.ts'
import { createOverflow } from './overflow.ts'
import { createPacedStarts, createStartLines } from './start-lines.ts'

/**
 * Who makes the first attempt: the workflow; or the starter for healthy webhooks, all the time (`direct`) or while the
 * engine is behind (`overflow`).
 */
export type FirstAttemptMode = 'workflow' | 'overflow' | 'direct'

/** Begins with each delivery that this process committed or took from the sweep. */
export type Starter = {
  /** Takes deliveries that are leased to this process; returns at once. */
  start(deliveries: readonly DeliveryToStart[]): void
  /** True while it has enough to do, or the engine is away: then nothing more should be taken for it. */
  isBusy(): boolean
  /** True while nothing waits that could be begun with now, little comes, and the engine is not behind. */
  isIdle(): boolean
  load(): StarterLoad
  /** Gives back what has not been begun, and returns when nothing is under way. Called again, what came meanwhile. */
  stop(): Promise<void>
}

/** Deliveries that wait for their start, starts under way, and first attempts that this process makes itself. */
export type StarterLoad = { waiting: number; inFlight: number; attempting: number }

/** Above this many deliveries one more goes straight back to its row, and comes again with the sweep. */
const MAX_BACKLOG = 10_000

/** Above this many that could go now it asks for no more work. */
const BUSY_BACKLOG = 200

/**
 * So many deliveries of a webhook that is slow or failing wait in memory. The rest of its backlog, which takes its time
 * anyway, waits in the database, so that nobody else's deliveries find the memory full of it.
 */
const MOST_OF_UNWELL = 200

/** After a refused start the engine is left alone for so long. */
const PAUSE_MS = 1_000

/** What was handed to the engine so long ago may have been attempted by another process. */
const ASK_AFTER_MS = 2_000

type StarterDependencies = Omit<FirstAttemptDependencies, 'handlers' | 'heldForMs'> & {
  workflows: DeliveryWorkflows
  handedOver: HandedOver
  metrics: Metrics
  mode: FirstAttemptMode
  /** Workflow starts under way at once. */
  concurrency: number
  /** First attempts of one webhook that are with the engine at once; null in a process that makes no attempts. */
  perWebhook: number | null
  leaseMs: number
  /** False while Temporal cannot be reached from here, as far as is known. */
  isServing: () => boolean
}

/**
 * Bounded: `concurrency` starts at once, MAX_BACKLOG deliveries, `perWebhook` first attempts of one webhook with the
 * engine, since what its gate would turn away need not be started yet. Nothing is lost with this process: its leases
 * run out and another one's sweep takes the rows.
 */
export function createStarter(dependencies: StarterDependencies): Starter {
  const { dataSource, workflows, handedOver, watch, logger, metrics, mode, perWebhook } = dependencies
  const rows = createKeptRows({ ...dependencies, owner: dependencies.processId })
  let stopping = false
  let pausedUntilMs = -Infinity

  const line = createStartLines({
    concurrency: dependencies.concurrency,
    hasRoom: (webhookId) => perWebhook === null || handedOver.of(webhookId) < perWebhook,
    // As fast as the endpoint can answer so many at once, and no faster.
    paceMs: (webhookId) => watch.takesMs(webhookId, dependencies.attemptTimeoutMs) / (perWebhook ?? Infinity),
    run: handOver,
  })
  handedOver.onEnded((webhookId) => line.look(webhookId))
  const first = createFirstAttempts({
    ...dependencies,
    heldForMs: (deliveryId) => rows.heldForMs(deliveryId),
    handlers: { attempted, unsuited: queue, returned: (delivery) => putBack(delivery) },
  })
  const overflow = createOverflow({
    waiting: () => line.ready() + handedOver.notBegun(),
    isAway: isPaused,
  })
  const retries = createPacedStarts()
  const asking = setInterval(() => {
    void forgetAttempted(handedOver.olderThan(ASK_AFTER_MS))
  }, ASK_AFTER_MS)

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

  function take(delivery: DeliveryToStart): void {
    // The sweep may find one whose outcome could not be recorded yet.
    if (rows.has(delivery.deliveryId)) return
    if (stopping || rows.size() >= MAX_BACKLOG) return putBack(delivery)
    rows.keep(delivery.deliveryId, delivery.readAtMs)
    if (isWell(delivery, watch)) overflow.arrived()
    if (isMadeHere() && first.suits(delivery)) first.add(delivery)
    else queue(delivery)
  }

  function isMadeHere(): boolean {
    if (perWebhook === null || mode === 'workflow') return false
    return mode === 'direct' || overflow.isBehind()
  }

  function isPaused(): boolean {
    return performance.now() < pausedUntilMs || !dependencies.isServing()
  }

  function queue(delivery: DeliveryToStart): void {
    const apart = !isWell(delivery, watch)
    if (apart && line.waitingOf(delivery.webhookId) >= MOST_OF_UNWELL) return putBack(delivery, 'later')
    // The line may be long, and the workflow reads the payload itself.
    line.add({ ...delivery, fresh: null }, apart)
  }

  function putBack({ deliveryId }: DeliveryToStart, again: 'soon' | 'later' = 'soon'): void {
    rows.giveBack(deliveryId, again)
    metrics.startEnded('returned')
  }

  async function handOver(delivery: DeliveryToStart, apart: boolean): Promise<void> {
    // Its webhook was well when it came.
    if (!apart && !isWell(delivery, watch)) {
      queue(delivery)
      return
    }
    if (isPaused() && takeOver(delivery)) return
    if (stopping || isPaused()) {
      putBack(delivery)
      return
    }
    const { deliveryId, webhookId } = delivery
    if (perWebhook !== null) handedOver.add(webhookId, deliveryId, apart)
    if (await isStarted(delivery, { number: 1, dueAtMs: null }, apart)) return
    handedOver.ended(deliveryId)
    if (!takeOver(delivery)) rows.giveBack(deliveryId, 'soon')
  }

  /** What the engine does not take is made here, where it may be. */
  function takeOver(delivery: DeliveryToStart): boolean {
    const isTaken = !stopping && isMadeHere() && first.suits(delivery)
    if (isTaken) first.add(delivery)
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
    isBusy: () => line.ready() + first.load().waiting > BUSY_BACKLOG || isPaused(),
    isIdle: () => line.ready() + first.load().waiting === 0 && overflow.isQuiet(),
    load() {
      const { waiting, inFlight: attempting } = first.load()
      return { waiting: line.waiting() + waiting, inFlight: line.inFlight(), attempting }
    },
    async stop() {
      stopping = true
      clearInterval(asking)
      rows.close()
      for (const delivery of line.drain()) putBack(delivery)
      await Promise.all([first.stop(), line.idle()])
      await retries.idle()
      await rows.flush()
    },
  }
}
