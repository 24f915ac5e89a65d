import type { DataSource } from 'typeorm'
import type { Claim } from '../../db/queries/attempts.ts'
import type { DeliveryToStart } from '../../db/queries/events.ts'
import { noteUnderWay } from '../../db/queries/keeping.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import { coversEventKey } from '../../domain/subscription.ts'
import type { Logger } from '../../logger.ts'
import type { Shutdown } from '../../shutdown.ts'
import type { MakeAttempt } from '../attempt/attempt-request.ts'
import type { Endpoints, Slot } from '../attempt/endpoints.ts'
import { createRoundRobinQueue } from './round-robin-queue.ts'
import { isForHealthyEndpoint } from './route-delivery.ts'
import { claimLeaseMs } from '../lease-times.ts'
import { WEBHOOK_TTL_MS, type WebhookCache } from './webhook-cache.ts'

/** First attempts that this process makes itself, without a workflow. */
export type InlineAttempts = {
  /** Takes a delivery of a healthy webhook, and makes its attempt as soon as there is a slot. */
  add(delivery: DeliveryToStart): void
  /** The endpoint may have a free slot now. */
  wake(webhookId: string): void
  /** Deliveries that are queued for an endpoint with a free slot. */
  ready(): number
  /** Ends what is queued as `stopping`, and returns when no attempt is in flight. */
  stop(): Promise<void>
}

/**
 * How an inline attempt ended: its outcome, made here or by another process before; `unsuited`: it was not made, since its
 * endpoint is not healthy any more; `fault`: a fault of ours came between; `stopping`: it was not made, since this process stops.
 */
export type InlineResult = AttemptOutcome | 'unsuited' | 'fault' | 'stopping'

/** The share of the slots that endpoints which never answered may occupy. */
const UNPROVEN_SHARE = 1 / 4

/** A POST that takes longer is noted on its row, for users and other processes to see, and frees its slot. */
const SLOW_AFTER_MS = 500
const CHECK_INTERVAL_MS = 250

/** POSTs that take longer, at most; those above it keep their slots. */
const MAX_SLOW = 1_000

/** Payloads that wait in memory. A delivery above that waits without, and its payload is read again. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

/** An attempt in flight. `free` gives its place in the queue to the next delivery. */
type InFlight = { deliveryId: string; beganAtMs: number; isSlow: boolean; free: () => void }

export type InlineAttemptDependencies = {
  dataSource: DataSource
  makeAttempt: MakeAttempt
  endpoints: Endpoints
  webhooks: WebhookCache
  logger: Logger
  processId: string
  shutdown: Pick<Shutdown, 'stopping' | 'cutOff'>
  attemptTimeoutMs: number
  /** Attempts in flight at once, of all endpoints together. */
  slots: number
  /** How long this process still has the lease of the delivery. */
  leasedForMs: (deliveryId: string) => number
  onEnded: (delivery: DeliveryToStart, result: InlineResult) => void
}

export function createInlineAttempts(dependencies: InlineAttemptDependencies): InlineAttempts {
  const { dataSource, makeAttempt, endpoints, webhooks, logger, processId, shutdown } = dependencies
  const { attemptTimeoutMs, leasedForMs, slots, onEnded } = dependencies
  const inFlight = new Set<InFlight>()
  const running = new Set<Promise<void>>()
  let waitingBytes = 0

  const createQueue = (concurrency: number) =>
    createRoundRobinQueue({
      concurrency,
      hasRoom: (webhookId) => endpoints.hasFreeSlot(webhookId),
      run: begin,
    })
  const unprovenSlots = Math.max(1, Math.floor(slots * UNPROVEN_SHARE))
  const queues = {
    healthy: createQueue(Math.max(1, slots - unprovenSlots)),
    unproven: createQueue(unprovenSlots),
  }
  const bothQueues = [queues.healthy, queues.unproven]

  /** Returns when the attempt has ended, or takes so long that the next may begin. */
  function begin(delivery: DeliveryToStart): Promise<void> {
    waitingBytes -= bytesOf(delivery)
    const { webhookId, deliveryId } = delivery
    const slot = isForHealthyEndpoint(delivery, endpoints) ? endpoints.acquire(webhookId, deliveryId) : null
    if (slot === null || 'retryAfterMs' in slot) {
      onEnded(delivery, 'unsuited')
      return Promise.resolve()
    }
    return new Promise((free) => {
      const entry = { deliveryId, beganAtMs: performance.now(), isSlow: false, free }
      inFlight.add(entry)
      const task = make(delivery, slot).finally(() => {
        slot.release(null)
        inFlight.delete(entry)
        running.delete(task)
        free()
      })
      running.add(task)
    })
  }

  async function make(delivery: DeliveryToStart, slot: Slot): Promise<void> {
    const { organisationId, webhookId, deliveryId } = delivery
    const kind = 'first' as const
    const request = { organisationId, webhookId, deliveryId, number: 1, hold: null, onlyIfDue: false, kind }
    const signals = { cancelled: shutdown.stopping, shutDown: shutdown.cutOff }
    try {
      const inline = { owner: processId, claim: await claimOfLease(delivery), slot }
      onEnded(delivery, await makeAttempt(request, signals, inline))
    } catch (error) {
      if (shutdown.stopping.aborted) {
        onEnded(delivery, 'stopping')
        return
      }
      logger.error({ event: 'first_attempt.failed', deliveryId, err: error }, 'first_attempt.failed')
      onEnded(delivery, 'fault')
    }
  }

  /**
   * The delivery as it was committed, with its webhook as it was a second ago at most. Its row has been leased to this
   * process since the commit, for longer than a POST may take: no other process attempts it, and it needs no claim.
   * Null where it does: the payload is not in memory, the lease is too short, or the webhook takes no such deliveries.
   */
  async function claimOfLease(delivery: DeliveryToStart): Promise<Claim | null> {
    const { organisationId, deliveryId, webhookId, eventKey, url, fresh, readAtMs } = delivery
    if (fresh === null || leasedForMs(deliveryId) < attemptTimeoutMs) return null
    const { body, secret } = fresh
    const webhook =
      performance.now() - readAtMs < WEBHOOK_TTL_MS
        ? { target: { url, secret, subscribedEventKeys: [eventKey] }, readAtMs }
        : await webhooks.get(organisationId, webhookId).catch(() => null)
    if (!webhook?.target || webhooks.hasChangedSince(webhookId, webhook.readAtMs)) return null
    const { target } = webhook
    if (!coversEventKey(target.subscribedEventKeys, eventKey)) return null
    return {
      state: 'in_progress',
      asked: false,
      claims: 1,
      ageMs: performance.now() - readAtMs,
      webhookId,
      eventKey,
      url: target.url,
      secret: target.secret,
      body,
    }
  }

  /** Deliveries of an endpoint that hangs need not wait for its deadline. */
  function passOnUnhealthy(): void {
    for (const queue of bothQueues)
      for (const delivery of queue.drainWhere((next) => !isForHealthyEndpoint(next, endpoints))) {
        waitingBytes -= bytesOf(delivery)
        onEnded(delivery, 'unsuited')
      }
  }

  function noteSlow(): void {
    const before = performance.now() - SLOW_AFTER_MS
    const slow = [...inFlight].filter((entry) => !entry.isSlow && entry.beganAtMs < before)
    if (slow.length === 0) return
    let room = MAX_SLOW - [...inFlight].filter(({ isSlow }) => isSlow).length
    for (const entry of slow) {
      entry.isSlow = true
      if (room-- > 0) entry.free()
    }
    const ids = slow.map(({ deliveryId }) => deliveryId)
    const lease = { owner: processId, leaseMs: claimLeaseMs(attemptTimeoutMs) }
    noteUnderWay(dataSource, ids, lease).catch((error: unknown) =>
      logger.warn({ event: 'first_attempt.not_noted', err: error }, 'first_attempt.not_noted'),
    )
  }

  const checking = setInterval(() => {
    passOnUnhealthy()
    noteSlow()
  }, CHECK_INTERVAL_MS)

  return {
    add(delivery) {
      const isTooMuch = waitingBytes + bytesOf(delivery) > MAX_WAITING_BYTES
      const kept = isTooMuch ? { ...delivery, fresh: null } : delivery
      waitingBytes += bytesOf(kept)
      const { webhookId, readAtMs } = delivery
      const isProven = endpoints.health(webhookId, readAtMs) === 'healthy'
      queues[isProven ? 'healthy' : 'unproven'].add(webhookId, kept)
    },
    wake(webhookId) {
      for (const queue of bothQueues) queue.wake(webhookId)
    },
    ready: () => bothQueues.reduce((sum, queue) => sum + queue.ready(), 0),
    async stop() {
      for (const queue of bothQueues) for (const delivery of queue.drain()) onEnded(delivery, 'stopping')
      while (running.size > 0) await Promise.all(running)
      clearInterval(checking)
    },
  }
}

function bytesOf({ fresh }: DeliveryToStart): number {
  return fresh?.body.length ?? 0
}
