import type { DataSource } from 'typeorm'
import type { Claim } from '../db/queries/attempts.ts'
import type { DeliveryToStart } from '../db/queries/events.ts'
import { noteUnderWay } from '../db/queries/keeping.ts'
import type { AttemptOutcome } from '../domain/attempt-outcome.ts'
import { coversEventKey } from '../domain/subscription.ts'
import type { Logger } from '../logger.ts'
import type { Shutdown } from '../shutdown.ts'
import type { MakeAttempt } from './attempt-request.ts'
import { createFairLine } from './fair-line.ts'
import { claimLeaseMs } from './timing.ts'
import { createWebhookSnapshots } from './webhook-snapshots.ts'
import type { WebhookWatch } from './webhook-watch.ts'

/** First attempts that this process makes itself, beside the engine. */
export type FirstAttempts = {
  /** Whether the delivery's webhook is one whose first attempts are made here: it is well, and not busy elsewhere. */
  suits(delivery: DeliveryToStart): boolean
  /** Takes a delivery of a webhook that suits, and makes its attempt as soon as there is room. */
  add(delivery: DeliveryToStart): void
  /** Deliveries that wait, and attempts under way. */
  load(): { waiting: number; inFlight: number }
  /** Hands back what waits, and returns when no attempt is under way. */
  stop(): Promise<void>
}

/** What becomes of a delivery that was taken. */
type Handlers = {
  /** Attempted: here, or by somebody else before. */
  attempted(delivery: DeliveryToStart, outcome: AttemptOutcome): void
  /** Not attempted: its webhook suits no more, or a fault of ours came between. */
  unsuited(delivery: DeliveryToStart): void
  /** Not attempted, since this process ends. */
  returned(delivery: DeliveryToStart): void
}

/** First attempts of one webhook under way at once; an endpoint that cannot keep up with so many is no quick one. */
const MOST_PER_WEBHOOK = 32

/** So long what was read of a webhook is believed; after that it is read again. */
const FRESH_MS = 1_000

/** A POST that takes longer is noted on its row, where people see it, and no other process takes it for lost. */
const NOTE_AFTER_MS = 500
const LOOK_EVERY_MS = 250

/** Payloads that may wait in memory; beyond that a delivery waits without, and its payload is read again. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024

type UnderWay = { deliveryId: string; begunAtMs: number; isNoted: boolean }

export type FirstAttemptDependencies = {
  dataSource: DataSource
  makeAttempt: MakeAttempt
  watch: WebhookWatch
  logger: Logger
  processId: string
  shutdown: Pick<Shutdown, 'stopping' | 'cutOff'>
  attemptTimeoutMs: number
  /** Attempts that it has under way at once, of all webhooks together. */
  slots: number
  /** How long this process still holds the delivery's row. */
  heldForMs: (deliveryId: string) => number
  handlers: Handlers
}

/** Serves webhooks in turn, so that a burst for one does not stand before the others. */
export function createFirstAttempts(dependencies: FirstAttemptDependencies): FirstAttempts {
  const { dataSource, makeAttempt, watch, logger, processId, shutdown } = dependencies
  const { attemptTimeoutMs, heldForMs, handlers } = dependencies
  const snapshots = createWebhookSnapshots(dataSource, FRESH_MS)
  const underWay = new Set<UnderWay>()
  // POSTs by webhook.
  const postsOf = new Map<string, number>()
  let waitingBytes = 0

  const line = createFairLine<DeliveryToStart>({
    concurrency: dependencies.slots,
    hasRoom: (webhookId) => (postsOf.get(webhookId) ?? 0) < MOST_PER_WEBHOOK,
    run: make,
  })

  function suits(delivery: DeliveryToStart): boolean {
    const { webhookId } = delivery
    if (!isWell(delivery, watch)) return false
    return watch.inFlight(webhookId) - (postsOf.get(webhookId) ?? 0) < MOST_PER_WEBHOOK
  }

  async function make(delivery: DeliveryToStart): Promise<void> {
    waitingBytes -= bytesOf(delivery)
    if (!suits(delivery)) {
      handlers.unsuited(delivery)
      return
    }
    const { organisationId, webhookId, deliveryId } = delivery
    const entry = { deliveryId, begunAtMs: performance.now(), isNoted: false }
    underWay.add(entry)
    const posted = beginPost(webhookId)
    const request = { organisationId, webhookId, deliveryId, number: 1, hold: null, onlyIfDue: false }
    const signals = { cancelled: shutdown.stopping, shutDown: shutdown.cutOff }
    try {
      const beside = { owner: processId, held: await heldByLease(delivery), posted }
      handlers.attempted(delivery, await makeAttempt(request, signals, beside))
    } catch (error) {
      if (shutdown.stopping.aborted) {
        handlers.returned(delivery)
        return
      }
      logger.error({ event: 'first_attempt.failed', deliveryId, err: error }, 'first_attempt.failed')
      handlers.unsuited(delivery)
    } finally {
      underWay.delete(entry)
      posted()
    }
  }

  /** Takes room of the webhook; the function returned gives it back, once, to the next of its line. */
  function beginPost(webhookId: string): () => void {
    postsOf.set(webhookId, (postsOf.get(webhookId) ?? 0) + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const left = (postsOf.get(webhookId) ?? 1) - 1
      if (left === 0) postsOf.delete(webhookId)
      else postsOf.set(webhookId, left)
      line.look(webhookId)
    }
  }

  /**
   * The delivery as it was committed, with its webhook as it was a second ago at most. Its row has been this process's
   * since the commit, and is for longer than a POST may take: nobody else attempts it, and it needs no claim. Null where
   * it does: the payload is not in memory, the hold is too short, or the webhook takes no such deliveries any more.
   */
  async function heldByLease(delivery: DeliveryToStart): Promise<Claim | null> {
    const { organisationId, deliveryId, webhookId, eventKey, url, fresh, readAtMs } = delivery
    if (fresh === null || heldForMs(deliveryId) < attemptTimeoutMs) return null
    const { body, secret } = fresh
    const webhook =
      performance.now() - readAtMs < FRESH_MS
        ? { target: { url, secret, subscribedEventKeys: [eventKey] }, readAtMs }
        : await snapshots.get(organisationId, webhookId).catch(() => null)
    if (!webhook?.target || watch.hasChangedSince(webhookId, webhook.readAtMs)) return null
    const { target } = webhook
    if (!coversEventKey(target.subscribedEventKeys, eventKey)) return null
    const ageMs = performance.now() - readAtMs
    return {
      state: 'in_progress',
      asked: false,
      claims: 1,
      ageMs,
      webhookId,
      eventKey,
      url: target.url,
      secret: target.secret,
      body,
    }
  }

  /** Those behind an endpoint that hangs need not wait for its deadline. */
  function handOnUnsuited(): void {
    for (const [webhookId, next] of line.next()) {
      if (suits(next)) continue
      for (const delivery of line.drain(webhookId)) {
        waitingBytes -= bytesOf(delivery)
        handlers.unsuited(delivery)
      }
    }
  }

  function noteSlow(): void {
    const before = performance.now() - NOTE_AFTER_MS
    const slow = [...underWay].filter((entry) => !entry.isNoted && entry.begunAtMs < before)
    if (slow.length === 0) return
    for (const entry of slow) entry.isNoted = true
    const ids = slow.map(({ deliveryId }) => deliveryId)
    const hold = { owner: processId, leaseMs: claimLeaseMs(attemptTimeoutMs) }
    noteUnderWay(dataSource, ids, hold).catch((error: unknown) =>
      logger.warn({ event: 'first_attempt.not_noted', err: error }, 'first_attempt.not_noted'),
    )
  }

  const looking = setInterval(() => {
    handOnUnsuited()
    noteSlow()
  }, LOOK_EVERY_MS)

  return {
    suits,
    add(delivery) {
      const isTooMuch = waitingBytes + bytesOf(delivery) > MOST_WAITING_BYTES
      const kept = isTooMuch ? { ...delivery, fresh: null } : delivery
      waitingBytes += bytesOf(kept)
      line.add(delivery.webhookId, kept)
    },
    load: () => ({ waiting: line.waiting(), inFlight: underWay.size }),
    async stop() {
      for (const delivery of line.drain()) handlers.returned(delivery)
      await line.idle()
      clearInterval(looking)
    },
  }
}

/** Its webhook has no open incident, and its endpoint has neither failed nor been slow since that was read. */
export function isWell({ webhookId, troubled, readAtMs }: DeliveryToStart, watch: WebhookWatch): boolean {
  return !troubled && watch.isWell(webhookId, readAtMs)
}

function bytesOf({ fresh }: DeliveryToStart): number {
  return fresh?.body.length ?? 0
}
