import { randomUUID } from 'node:crypto'
import type { OverdueDelivery } from '../../db/queries/due-deliveries.ts'
import { isTimeout, nextAttempt, type AttemptOutcome } from '../../domain/attempt-outcome.ts'
import { createPollLoop } from '../../poll-loop.ts'
import { every } from '../../timers.ts'
import type { AttemptEvent, MakeAttempt, OnAttempt } from '../attempt/make-attempt.ts'
import { START_HOLD_MS, type SweptRow } from '../protocol/sweep.ts'
import type { Audience, CommittedDelivery, HeldDelivery, Reservation } from '../protocol/commit-events.ts'
import { createBackpressure } from './backpressure.ts'
import { hold, type DeliveryRows, createRowBatch } from './delivery-rows.ts'
import {
  createFirstAttemptsInTemporal,
  createWorkflowStarts,
  type WorkflowStartDependencies,
} from './workflow-starts.ts'
import {
  createInlineAttempts,
  type ClaimedDelivery,
  type InlineAttemptDependencies,
} from './inline-attempts.ts'
import { createPuller } from './puller.ts'
import { createReservations } from './reservations.ts'

/**
 * Who makes the first attempt: the workflow, or, at fast endpoints, the process itself: always (`direct`), or while
 * Temporal is behind (`overflow`).
 */
export type FirstAttemptMode = 'workflow' | 'overflow' | 'direct'

/** Decides who makes the first attempt of each delivery, and begins it. */
export type Dispatcher = {
  /** Starts to take up deliveries from their rows. */
  begin(): void
  /**
   * Reserves room for the deliveries of a commit; call it just before the statement is sent. At most `count` rows are
   * expected, of events with these audiences.
   */
  reserve(audiences: readonly Audience[], count: number): Reservation
  /** Takes deliveries that this process has committed; returns at once. */
  start(deliveries: readonly CommittedDelivery[]): void
  /** Makes overdue attempts in this process (`direct`). Returns the ids of those that it has claimed. */
  attemptOverdue(deliveries: readonly OverdueDelivery[]): Promise<ReadonlySet<string>>
  /** Makes an attempt, a workflow's or an inline one; what it reports updates what is known of its delivery. */
  makeAttempt: MakeAttempt
  /** Notes whether workflows that follow are still to be started: new deliveries do not queue behind them. */
  followingOwed(isOwed: boolean): void
  /** True while few deliveries arrive, and Temporal is not behind. */
  isQuiet(): boolean
  /** True when deliveries of fast endpoints arrived in the last second. */
  hasRecentDeliveries(): boolean
  load(): DispatcherLoad
  /** Runs one pass over the rows. */
  pull(): Promise<void>
  /** Gives back what has not begun, and returns when nothing is in flight. May be called again. */
  stop(): Promise<void>
}

/** Queued deliveries, workflow starts in flight, and inline attempts in flight. */
export type DispatcherLoad = { queued: number; startsInFlight: number; inlineInFlight: number }

/** Reserves nothing. */
const NONE = { rooms: { inAll: 0, defaultRoom: 0, webhooks: [] }, settle: () => undefined }

/** Interval at which all that waits is considered again. */
const CHECK_INTERVAL_MS = 250

/** After this time in Temporal, and in this interval, first attempts are checked: another process may have made them. */
const ELSEWHERE_INTERVAL_MS = 250

export type DispatcherDependencies = Omit<
  InlineAttemptDependencies,
  'makeAttempt' | 'onEnded' | 'onReleased'
> &
  Omit<WorkflowStartDependencies, 'started' | 'givenBack' | 'inTemporal' | 'onRefused'> & {
    rows: DeliveryRows
    mode: FirstAttemptMode
    /** False in a process without a worker: it knows no endpoint. */
    makesAttempts: boolean
    createAttempt: (onAttempt: OnAttempt) => MakeAttempt
  }

/**
 * Builds the dispatcher. What it holds begins within seconds, or returns to its row: inline attempts by MAX_CLAIM_AGE_MS,
 * workflow starts by START_HOLD_MS. What waits, waits on its row.
 */
export function createDispatcher(dependencies: DispatcherDependencies): Dispatcher {
  const { rows, endpoints, logger, metrics, timers, mode, makesAttempts } = dependencies
  const started = createRowBatch('mark', rows.markWorkflowsStarted, dependencies)
  const released = createRowBatch('release', rows.release, dependencies)
  const givenBack = createRowBatch('give_back', (held: SweptRow[]) => hold(rows, held, 0), dependencies)
  const flush = () => Promise.all([started.flush(), released.flush(), givenBack.flush()])
  const inTemporal = createFirstAttemptsInTemporal(timers.nowMs)
  const starts = createWorkflowStarts({ ...dependencies, started, givenBack, inTemporal, onRefused })
  const makeAttempt = dependencies.createAttempt(onAttempt)
  const inline = createInlineAttempts({ ...dependencies, makeAttempt, onReleased, onEnded })
  const reservations = createReservations(inline)
  const backpressure = createBackpressure({
    waiting: () => starts.queued() + inTemporal.waiting(),
    isTemporalUnavailable: () => starts.isPaused(),
    nowMs: timers.nowMs,
  })
  const puller = createPuller({
    ...dependencies,
    starts,
    inTemporal,
    reservations,
    isInline,
    claim,
    onTaken: (count) => backpressure.arrived(count),
  })
  const stopChecking = every(timers, CHECK_INTERVAL_MS, () => {
    inline.check()
    starts.check()
    if (isInline()) beginHeld(starts.takeAll())
  })
  const elsewhere = createPollLoop({
    intervalMs: ELSEWHERE_INTERVAL_MS,
    run: dropAttemptedElsewhere,
    event: 'dispatcher.database_failed',
    logger,
    timers,
  })
  elsewhere.start()
  let isStopping = false
  let isFollowingOwed = false

  /** The one decision who makes the first attempt at a fast endpoint. At a slow one the workflow does. */
  function isInline(): boolean {
    switch (mode) {
      case 'workflow':
        return false
      case 'direct':
        return true
      case 'overflow':
        return backpressure.isTemporalBehind() || isFollowingOwed
    }
  }

  /** Claims those for which there is room, in one statement, and begins their attempts. Returns their ids. */
  async function claim(deliveries: readonly Omit<ClaimedDelivery, 'claim'>[]): Promise<ReadonlySet<string>> {
    const claimed = new Set<string>()
    if (isStopping) return claimed
    const { fitting, settle } = reservations.forClaims(deliveries)
    const runs = fitting.map(({ organisationId, deliveryId, attempts }) => {
      return { organisationId, deliveryId, number: attempts + 1, owner: randomUUID(), isWorkflow: false }
    })
    try {
      const claims = fitting.length === 0 ? [] : await rows.claim(runs)
      for (const [index, delivery] of fitting.entries()) {
        const granted = claims[index] ?? null
        if (granted === null) continue
        claimed.add(delivery.deliveryId)
        inline.add({ ...delivery, claim: granted })
      }
    } catch (error) {
      logger.warn({ event: 'dispatcher.database_failed', what: 'claim', err: error })
      // Its answer may have been lost.
      for (const { deliveryId, owner } of runs) released.add({ deliveryId, owner, hasPosted: false })
    } finally {
      settle()
    }
    return claimed
  }

  /** Begins deliveries whose rows are left to this process. */
  function beginHeld(held: readonly HeldDelivery[]): void {
    const toClaim = held.filter((delivery) => {
      if (isInline() && endpoints.health(delivery.webhookId) === 'fast') return true
      starts.add(delivery)
      return false
    })
    if (toClaim.length > 0) void claimHeld(toClaim)
  }

  async function claimHeld(held: readonly HeldDelivery[]): Promise<void> {
    const claimed = await claim(held)
    const left = held.filter(({ deliveryId }) => !claimed.has(deliveryId))
    for (const delivery of left) givenBack.add(delivery)
  }

  function onRefused(delivery: HeldDelivery): void {
    if (isInline() && endpoints.health(delivery.webhookId) === 'fast') void claimHeld([delivery])
  }

  function onReleased({ deliveryId, claim: { owner } }: ClaimedDelivery): void {
    metrics.startEnded('released')
    released.add({ deliveryId, owner, hasPosted: false })
  }

  function onEnded(delivery: ClaimedDelivery, outcome: AttemptOutcome): void {
    metrics.startEnded('inline')
    if (outcome.state !== 'waiting') return
    starts.addRetry(delivery, nextAttempt(outcome), isTimeout(outcome.failureCode) ? 'slow' : 'retry')
  }

  function onAttempt({ isInline: isMadeHere, webhookId, deliveryId }: AttemptEvent): void {
    if (!isMadeHere) inTemporal.remove(deliveryId)
    starts.wake(webhookId)
    inline.wake(webhookId)
  }

  async function dropAttemptedElsewhere(): Promise<boolean> {
    const attempts = inTemporal.since(ELSEWHERE_INTERVAL_MS)
    if (attempts.length === 0) return false
    const found = await rows.findFirstAttempts(attempts.map(({ deliveryId }) => deliveryId))
    for (const { deliveryId, webhookId } of attempts) {
      const state = found.get(deliveryId)
      if (state === 'open') continue
      if (state === 'completed') endpoints.succeededElsewhere(webhookId)
      onAttempt({ isInline: false, deliveryId, webhookId })
    }
    return false
  }

  return {
    begin: () => puller.start(),
    reserve(audiences, count) {
      // Rows are left at once to processes that know the endpoints, and make attempts.
      if (!makesAttempts || isStopping) return { ...NONE, sweepAfterMs: 0 }
      if (isInline()) return { ...reservations.forCommit(audiences, count), sweepAfterMs: 0 }
      // In `workflow` a held row that finds no room costs a write that gives it back; in `overflow` it is claimed.
      const isHeld = mode === 'overflow' || count <= starts.room()
      return { ...NONE, sweepAfterMs: isHeld ? START_HOLD_MS : 0 }
    },
    start(deliveries) {
      const held: HeldDelivery[] = []
      for (const delivery of deliveries) {
        reservations.note(delivery)
        const isTaken = delivery.claim !== null || delivery.heldUntilMs > timers.nowMs()
        if (isTaken && endpoints.health(delivery.webhookId) === 'fast') backpressure.arrived(1)
        if (delivery.claim !== null) inline.add(delivery)
        else if (isTaken) held.push(delivery)
      }
      beginHeld(held)
    },
    attemptOverdue: (deliveries) => (mode === 'direct' ? claim(deliveries) : Promise.resolve(new Set())),
    makeAttempt,
    followingOwed(isOwed) {
      isFollowingOwed = isOwed
    },
    isQuiet: () => backpressure.isQuiet(),
    hasRecentDeliveries: () => backpressure.hasRecentDeliveries(),
    load: () => ({
      queued: inline.queued() + starts.queued(),
      startsInFlight: starts.inFlight(),
      inlineInFlight: inline.inFlight(),
    }),
    pull: () => puller.runOnce(),
    async stop() {
      isStopping = true
      stopChecking()
      const stopped = Promise.all([puller.stop(), elsewhere.stop(), inline.stop(), starts.stop()])
      await flush()
      await stopped
      await flush()
    },
  }
}
