import type { DataSource } from 'typeorm'
import type { Claim } from '../../db/queries/claims.ts'
import type { DeliveryToStart } from '../../db/queries/events.ts'
import { markInFlight } from '../../db/queries/leases.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import { coversEventKey } from '../../domain/subscription.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Shutdown } from '../../shutdown.ts'
import type { MakeAttempt } from '../attempt/attempt-request.ts'
import type { Endpoints, Slot } from '../attempt/endpoint-registry.ts'
import type { Leases } from './leases.ts'
import { createRoundRobinQueue } from '../../round-robin-queue.ts'
import { isForHealthyEndpoint } from './route-delivery.ts'
import { claimLeaseMs } from '../lease-times.ts'
import { WEBHOOK_TTL_MS, type WebhookCache } from './webhook-cache.ts'

/** Makes first attempts in this process, without a workflow. */
export type InlineAttempts = {
  /** Queues a delivery of a healthy webhook, and makes its attempt as soon as a slot is free. */
  add(delivery: DeliveryToStart): void
  /** Tries the deliveries of an endpoint that may have a free slot now. */
  wake(webhookId: string): void
  /** Returns the deliveries that are queued for endpoints with a free slot. */
  ready(): number
  /** Ends what is queued as `stopping`, and returns when no attempt is in flight. */
  stop(): Promise<void>
}

/**
 * How an inline attempt ended: with an outcome, of this process or of another before; or not made, since its endpoint is
 * not healthy any more (`unhealthy`), by a fault of ours (`fault`), or since this process stops (`stopping`).
 */
export type InlineResult = AttemptOutcome | 'unhealthy' | 'fault' | 'stopping'

/** Share of the slots for endpoints that never answered. */
const UNPROVEN_SHARE = 1 / 4

/** A POST that takes longer is marked `in_progress` on its row, and frees its slot. */
const SLOW_POST_MS = 500
const CHECK_INTERVAL_MS = 250

/** Slow POSTs without a slot; further ones keep theirs. */
const MAX_SLOW = 1_000

/** Queued payloads in memory. Deliveries above this are queued without, and their payload is read again. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024

const FIRST_ATTEMPT = { number: 1, waitUntil: null, onlyIfDue: false, kind: 'first' } as const

/** An attempt in flight. `free` frees its slot for the next delivery. */
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
  leases: Pick<Leases, 'remainingMs'>
  onEnded: (delivery: DeliveryToStart, result: InlineResult) => void
}

export function createInlineAttempts(dependencies: InlineAttemptDependencies): InlineAttempts {
  const { dataSource, makeAttempt, endpoints, webhooks, logger, processId, shutdown } = dependencies
  const { attemptTimeoutMs, leases, slots, onEnded } = dependencies
  const inFlight = new Map<InFlight, Promise<void>>()
  let queuedBytes = 0

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

  /** Makes the attempt. Returns when its slot is free again: at its end, or sooner for a slow POST. */
  function begin(delivery: DeliveryToStart): Promise<void> {
    queuedBytes -= bytesOf(delivery)
    const { webhookId, deliveryId } = delivery
    const slot = isForHealthyEndpoint(delivery, endpoints) ? endpoints.acquire(webhookId, deliveryId) : null
    if (slot === null || 'retryAfterMs' in slot) {
      onEnded(delivery, 'unhealthy')
      return Promise.resolve()
    }
    return new Promise((free) => {
      const entry = { deliveryId, beganAtMs: performance.now(), isSlow: false, free }
      const task = make(delivery, slot).finally(() => {
        slot.release(null)
        inFlight.delete(entry)
        free()
      })
      inFlight.set(entry, task)
    })
  }

  async function make(delivery: DeliveryToStart, slot: Slot): Promise<void> {
    const { organisationId, webhookId, deliveryId } = delivery
    const request = { organisationId, webhookId, deliveryId, ...FIRST_ATTEMPT }
    const signals = { cancelled: shutdown.stopping, shutDown: shutdown.cutOff }
    try {
      const inline = { owner: processId, claim: await claimUnderLease(delivery), slot }
      onEnded(delivery, await makeAttempt(request, signals, inline))
    } catch (error) {
      const isStopping = shutdown.stopping.aborted
      const fields = { event: 'inline_attempt.failed', deliveryId, err: error }
      if (!isStopping) logger.error(fields, fields.event)
      onEnded(delivery, isStopping ? 'stopping' : 'fault')
    }
  }

  /**
   * Returns the delivery as it was committed, with its webhook as it was at most WEBHOOK_TTL_MS ago. The row is leased to
   * this process for longer than a POST may take, and needs no claim. Null where it does: the payload is not in memory,
   * the lease is too short, or the webhook does not take such deliveries.
   */
  async function claimUnderLease(delivery: DeliveryToStart): Promise<Claim | null> {
    const { organisationId, deliveryId, webhookId, eventKey, url, fresh, readAtMs } = delivery
    if (fresh === null || leases.remainingMs(deliveryId) < attemptTimeoutMs) return null
    const { body, secret, traceId } = fresh
    const webhook =
      performance.now() - readAtMs < WEBHOOK_TTL_MS
        ? { target: { url, secret, subscribedEventKeys: [eventKey] }, readAtMs }
        : await webhooks.get(organisationId, webhookId).catch(() => null)
    if (!webhook?.target || webhooks.hasChangedSince(webhookId, webhook.readAtMs)) return null
    const { target } = webhook
    if (!coversEventKey(target.subscribedEventKeys, eventKey)) return null
    return {
      state: 'in_progress',
      retryRequested: false,
      claims: 1,
      ageMs: performance.now() - readAtMs,
      webhookId,
      eventKey,
      traceId,
      url: target.url,
      secret: target.secret,
      body,
    }
  }

  /** Returns deliveries to the dispatcher whose endpoint is not healthy any more. */
  function rerouteQueued(): void {
    for (const queue of bothQueues)
      for (const delivery of queue.drainWhere((next) => !isForHealthyEndpoint(next, endpoints))) {
        queuedBytes -= bytesOf(delivery)
        onEnded(delivery, 'unhealthy')
      }
  }

  function markSlow(): void {
    const before = performance.now() - SLOW_POST_MS
    const slow = [...inFlight.keys()].filter((entry) => !entry.isSlow && entry.beganAtMs < before)
    if (slow.length === 0) return
    let room = MAX_SLOW - [...inFlight.keys()].filter(({ isSlow }) => isSlow).length
    for (const entry of slow) {
      entry.isSlow = true
      if (room-- > 0) entry.free()
    }
    const ids = slow.map(({ deliveryId }) => deliveryId)
    const lease = { owner: processId, leaseMs: claimLeaseMs(attemptTimeoutMs) }
    markInFlight(dataSource, ids, lease).catch((error: unknown) =>
      logger.warn({ event: 'inline_attempt.mark_failed', err: error }, 'inline_attempt.mark_failed'),
    )
  }

  const checking = setInterval(() => {
    rerouteQueued()
    markSlow()
  }, CHECK_INTERVAL_MS)

  return {
    add(delivery) {
      const hasRoom = queuedBytes + bytesOf(delivery) <= MAX_QUEUED_BYTES
      const queued = hasRoom ? delivery : { ...delivery, fresh: null }
      queuedBytes += bytesOf(queued)
      const { webhookId } = delivery
      const isProven = endpoints.health(webhookId) === 'healthy'
      queues[isProven ? 'healthy' : 'unproven'].add(webhookId, queued)
    },
    wake(webhookId) {
      for (const queue of bothQueues) queue.wake(webhookId)
    },
    ready: () => bothQueues.reduce((sum, queue) => sum + queue.ready(), 0),
    async stop() {
      for (const queue of bothQueues) for (const delivery of queue.drain()) onEnded(delivery, 'stopping')
      while (inFlight.size > 0) await Promise.all(inFlight.values())
      clearInterval(checking)
    },
  }
}

function bytesOf({ fresh }: DeliveryToStart): number {
  return fresh?.body.length ?? 0
}
