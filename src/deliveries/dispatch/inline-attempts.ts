import type { UnstartedDelivery } from '../../db/queries/due-deliveries.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import type { Logger } from '../../observability/logger.ts'
import { createRoundRobinQueue } from '../../round-robin-queue.ts'
import type { Shutdown } from '../../shutdown.ts'
import type { Timers } from '../../timers.ts'
import type { MakeAttempt } from '../attempt/make-attempt.ts'
import type { Slot } from '../attempt/endpoint.ts'
import type { Endpoints } from '../attempt/endpoint-concurrency.ts'
import { isFresh, MAX_CLAIM_AGE_MS } from '../attempt/claim-attempt.ts'
import type { Claim } from '../protocol/claim.ts'
import { createRate } from './backpressure.ts'
import type { WebhookChanges } from '../../webhooks/webhook-locks.ts'

/** A delivery that this process has claimed. */
export type ClaimedDelivery = Omit<UnstartedDelivery, 'sweepAt'> & { claim: Claim }

/** Makes attempts in this process, without a workflow. */
export type InlineAttempts = {
  /** Queues an attempt at a fast endpoint. It begins within MAX_CLAIM_AGE_MS of its claim, or its run is released. */
  add(delivery: ClaimedDelivery): void
  /** Tries the deliveries of an endpoint that may have a free slot now. */
  wake(webhookId: string): void
  /** Releases what has not begun in time, and tries the others. */
  check(): void
  /** Returns how many attempts, queued ones included, can begin soon: of all endpoints, and of one. */
  room(): number
  roomOf(webhookId: string): number
  queued(): number
  inFlight(): number
  /** Releases what is queued, and returns when no attempt is in flight. */
  stop(): Promise<void>
}

/** What can begin within this time is claimed: half of what a claim is good for, since endpoints become slower. */
const ROOM_MS = MAX_CLAIM_AGE_MS / 2

/** Share of the slots for endpoints that never answered. */
const UNKNOWN_SHARE = 1 / 4

/** A POST that takes longer gives its slot back; at most `MAX_SLOW` do at once. */
const SLOT_RELEASE_DELAY_MS = 500
const MAX_SLOW = 1_000

/** Queued payloads in memory, above which nothing more is claimed. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024

export type InlineAttemptDependencies = {
  makeAttempt: MakeAttempt
  endpoints: Endpoints
  webhookChanges: WebhookChanges
  logger: Logger
  timers: Timers
  shutdown: Pick<Shutdown, 'stopping' | 'cutOff'>
  /** Attempts in flight at once, of all endpoints together. */
  slots: number
  onReleased: (delivery: ClaimedDelivery) => void
  onEnded: (delivery: ClaimedDelivery, outcome: AttemptOutcome) => void
}

export function createInlineAttempts(dependencies: InlineAttemptDependencies): InlineAttempts {
  const { makeAttempt, endpoints, webhookChanges, logger, timers, shutdown, slots } = dependencies
  const completions = createRate(timers.nowMs)
  const inFlight = new Set<Promise<void>>()
  const unknownSlots = Math.max(1, Math.floor(slots * UNKNOWN_SHARE))
  let [unknownInUse, slow, queuedBytes, isStopping] = [0, 0, 0, false]
  const queue = createRoundRobinQueue<ClaimedDelivery>({
    concurrency: slots,
    hasRoom: (webhookId) =>
      endpoints.hasFreeSlot(webhookId) && (endpoints.hasAnswered(webhookId) || unknownInUse < unknownSlots),
    run: begin,
  })

  function mayBegin({ webhookId, claim }: ClaimedDelivery): boolean {
    return (
      isFresh(claim, timers.nowMs()) &&
      !webhookChanges.hasChangedSince(webhookId, claim.claimedAtMs) &&
      endpoints.health(webhookId) === 'fast'
    )
  }

  /** Makes the attempt. Returns when its slot is free again: at its end, or sooner for a slow POST. */
  function begin(delivery: ClaimedDelivery): Promise<void> {
    const { webhookId, deliveryId } = delivery
    queuedBytes -= delivery.claim.body.length
    const slot = mayBegin(delivery) ? endpoints.acquire(webhookId, deliveryId) : null
    if (slot === null || 'retryAfterMs' in slot) {
      dependencies.onReleased(delivery)
      return Promise.resolve()
    }
    return occupySlot(webhookId, make(delivery, slot))
  }

  function occupySlot(webhookId: string, attempt: Promise<void>): Promise<void> {
    const isUnknown = !endpoints.hasAnswered(webhookId)
    if (isUnknown) unknownInUse++
    inFlight.add(attempt)
    let isSlow = false
    return new Promise((resolve) => {
      let free = (): void => {
        free = () => undefined
        resolve()
        if (!isUnknown) return
        unknownInUse--
        // Others that never answered may wait for it.
        queue.wake()
      }
      const cancel = timers.after(SLOT_RELEASE_DELAY_MS, () => {
        if (slow >= MAX_SLOW) return
        isSlow = true
        slow++
        free()
      })
      void attempt.finally(() => {
        cancel()
        inFlight.delete(attempt)
        if (isSlow) slow--
        free()
      })
    })
  }

  /** Never rejects: a run without an outcome has released its row. */
  async function make(delivery: ClaimedDelivery, slot: Slot): Promise<void> {
    const { organisationId, webhookId, deliveryId, attempts, nextAttemptAt, claim } = delivery
    const request = {
      organisationId,
      webhookId,
      deliveryId,
      number: attempts + 1,
      dueAtMs: nextAttemptAt?.getTime() ?? null,
      maxWaitMs: 0,
    }
    const signals = { cancelled: shutdown.stopping, shutDown: shutdown.cutOff }
    const queue = attempts === 0 ? 'first' : 'retry'
    try {
      const outcome = await makeAttempt({ ...request, queue }, signals, { claim, slot })
      completions.count(1)
      dependencies.onEnded(delivery, outcome)
    } catch (error) {
      if (shutdown.stopping.aborted) return
      endpoints.noteFault(webhookId)
      logger.error({ event: 'inline_attempt.failed', deliveryId, err: error })
    } finally {
      slot.release(null)
    }
  }

  function releaseAll(deliveries: readonly ClaimedDelivery[]): void {
    for (const delivery of deliveries) {
      queuedBytes -= delivery.claim.body.length
      dependencies.onReleased(delivery)
    }
  }

  return {
    add(delivery) {
      if (isStopping || !mayBegin(delivery)) {
        dependencies.onReleased(delivery)
        return
      }
      queuedBytes += delivery.claim.body.length
      queue.add(delivery.webhookId, delivery)
    },
    wake: (webhookId) => queue.wake(webhookId),
    check() {
      releaseAll(queue.drain((delivery) => !mayBegin(delivery)))
      queue.wake()
    },
    room() {
      if (isStopping || queuedBytes >= MAX_QUEUED_BYTES) return 0
      const soon = Math.floor((completions.perSecond() * ROOM_MS) / 1_000)
      return Math.max(0, Math.max(slots, soon) - queue.size())
    },
    roomOf(webhookId) {
      if (endpoints.health(webhookId) === 'slow') return 0
      return Math.max(0, endpoints.room(webhookId, ROOM_MS) - queue.sizeOf(webhookId))
    },
    queued: () => queue.size(),
    inFlight: () => inFlight.size,
    async stop() {
      isStopping = true
      releaseAll(queue.drain())
      while (inFlight.size > 0) await Promise.all(inFlight)
    },
  }
}
