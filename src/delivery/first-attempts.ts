import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import type { Claim } from '../db/queries/attempts.ts'
import type { DeliveryToStart } from '../db/queries/events.ts'
import { noteUnderWay } from '../db/queries/keeping.ts'
import type { AttemptOutcome } from '../domain/attempt-outcome.ts'
import type { Logger } from '../logger.ts'
import type { MakeAttempt } from './attempt-request.ts'
import { claimLeaseMs } from './timing.ts'
import type { WebhookWatch } from './webhook-watch.ts'

/** First attempts that this process makes itself, beside the engine. */
export type FirstAttempts = {
  /** Whether the delivery's webhook is one whose first attempts are made here: it is well, and not busy elsewhere. */
  suits(delivery: DeliveryToStart): boolean
  /** Takes a delivery of a webhook that suits, and makes its attempt as soon as there is room. */
  add(delivery: DeliveryToStart): void
  /** Deliveries that wait, and attempts under way. */
  load(): { waiting: number; inFlight: number }
  /** Hands back what waits, and returns when no attempt is under way; after `graceMs` POSTs are cut off. */
  stop(graceMs: number): Promise<void>
}

/** What becomes of a delivery that was taken. */
type Handlers = {
  /** Attempted: here, or by somebody else before. */
  attempted(delivery: DeliveryToStart, outcome: AttemptOutcome): Promise<void>
  /** Not attempted: its webhook suits no more, or a fault of ours came between. */
  unsuited(delivery: DeliveryToStart): void
  /** Not attempted, since this process ends. */
  returned(delivery: DeliveryToStart): void
}

/** First attempts of one webhook under way at once; an endpoint that cannot keep up with so many is no quick one. */
const MOST_PER_WEBHOOK = 32

/** So long what was read at the commit is believed; after that a first attempt claims its row, and reads it again. */
const FRESH_MS = 1_000

/** A POST that takes longer is noted on its row, where people see it, and no other process takes it for lost. */
const NOTE_AFTER_MS = 500
const NOTE_EVERY_MS = 250

/** Payloads that may wait in memory; beyond that a delivery waits without, and its payload is read again. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024

type Lane = { waiting: DeliveryToStart[]; underWay: number }

type UnderWay = { deliveryId: string; begunAtMs: number; isNoted: boolean }

export type FirstAttemptDependencies = {
  dataSource: DataSource
  makeAttempt: MakeAttempt
  watch: WebhookWatch
  logger: Logger
  processId: string
  attemptTimeoutMs: number
  /** Attempts that it has under way at once, of all webhooks together. */
  slots: number
  handlers: Handlers
}

/** Serves webhooks in turn, so that a burst for one does not stand before the others. */
export function createFirstAttempts(dependencies: FirstAttemptDependencies): FirstAttempts {
  const { dataSource, makeAttempt, watch, logger, processId, slots, handlers } = dependencies
  const lanes = new Map<string, Lane>()
  // Webhooks that may have a turn, in the order of their turns.
  const turns = new Set<string>()
  const underWay = new Set<UnderWay>()
  const running = new Set<Promise<void>>()
  const stopping = new AbortController()
  let waiting = 0
  let waitingBytes = 0

  function suits(delivery: DeliveryToStart): boolean {
    const { webhookId } = delivery
    if (!isWell(delivery, watch)) return false
    const elsewhere = watch.inFlight(webhookId) - (lanes.get(webhookId)?.underWay ?? 0)
    return elsewhere < MOST_PER_WEBHOOK
  }

  function go(): void {
    for (const webhookId of turns) {
      if (underWay.size >= slots) return
      turns.delete(webhookId)
      const lane = lanes.get(webhookId)
      if (lane === undefined || lane.underWay >= MOST_PER_WEBHOOK) continue
      const delivery = lane.waiting.shift()
      if (delivery === undefined) continue
      waiting--
      waitingBytes -= bytesOf(delivery)
      if (lane.waiting.length > 0) turns.add(webhookId)
      if (!suits(delivery)) {
        if (lane.waiting.length === 0 && lane.underWay === 0) lanes.delete(webhookId)
        handlers.unsuited(delivery)
        continue
      }
      lane.underWay++
      const run = make(delivery).finally(() => {
        running.delete(run)
        lane.underWay--
        if (lane.waiting.length > 0) turns.add(webhookId)
        else if (lane.underWay === 0) lanes.delete(webhookId)
        go()
      })
      running.add(run)
    }
  }

  async function make(delivery: DeliveryToStart): Promise<void> {
    const { organisationId, webhookId, deliveryId } = delivery
    const entry = { deliveryId, begunAtMs: performance.now(), isNoted: false }
    underWay.add(entry)
    const request = { organisationId, webhookId, deliveryId, number: 1, hold: null, onlyIfDue: false }
    const signals = { cancelled: stopping.signal, shutDown: stopping.signal }
    try {
      const beside = { owner: processId, held: heldByLease(delivery, watch) }
      await handlers.attempted(delivery, await makeAttempt(request, signals, beside))
    } catch (error) {
      if (stopping.signal.aborted) {
        handlers.returned(delivery)
        return
      }
      logger.error({ event: 'first_attempt.failed', deliveryId, err: error }, 'first_attempt.failed')
      handlers.unsuited(delivery)
    } finally {
      underWay.delete(entry)
    }
  }

  /** Those behind an endpoint that hangs need not wait for its deadline. */
  function handOnUnsuited(): void {
    for (const lane of lanes.values()) {
      const [next] = lane.waiting
      if (next === undefined || suits(next)) continue
      const left = lane.waiting.splice(0)
      waiting -= left.length
      for (const delivery of left) {
        waitingBytes -= bytesOf(delivery)
        handlers.unsuited(delivery)
      }
    }
  }

  const leaseMs = claimLeaseMs(dependencies.attemptTimeoutMs)
  const noting = setInterval(() => {
    handOnUnsuited()
    const before = performance.now() - NOTE_AFTER_MS
    const slow = [...underWay].filter((entry) => !entry.isNoted && entry.begunAtMs < before)
    if (slow.length === 0) return
    for (const entry of slow) entry.isNoted = true
    const ids = slow.map(({ deliveryId }) => deliveryId)
    noteUnderWay(dataSource, ids, { owner: processId, leaseMs }).catch((error: unknown) =>
      logger.warn({ event: 'first_attempt.not_noted', err: error }, 'first_attempt.not_noted'),
    )
  }, NOTE_EVERY_MS)

  return {
    suits,
    add(delivery) {
      const { webhookId } = delivery
      const lane = lanes.get(webhookId) ?? { waiting: [], underWay: 0 }
      lanes.set(webhookId, lane)
      const isTooMuch = waitingBytes + bytesOf(delivery) > MOST_WAITING_BYTES
      const kept = isTooMuch ? { ...delivery, fresh: null } : delivery
      lane.waiting.push(kept)
      waiting++
      waitingBytes += bytesOf(kept)
      turns.add(webhookId)
      go()
    },
    load: () => ({ waiting, inFlight: underWay.size }),
    async stop(graceMs) {
      const left = [...lanes.values()].flatMap((lane) => lane.waiting.splice(0))
      turns.clear()
      waiting = 0
      waitingBytes = 0
      for (const delivery of left) handlers.returned(delivery)
      const ended = Promise.all(running)
      const timeUp = new AbortController()
      void delay(graceMs, undefined, { signal: timeUp.signal }).then(
        () => stopping.abort(new Error('this process ends')),
        () => undefined,
      )
      await ended
      timeUp.abort()
      clearInterval(noting)
    },
  }
}

/**
 * The delivery as it was committed an instant ago, which is this process's under the lease of the commit: nobody else
 * attempts it, and it needs no claim. Null where that was longer ago, or its webhook was changed here since.
 */
function heldByLease(delivery: DeliveryToStart, watch: WebhookWatch): Claim | null {
  const { webhookId, eventKey, url, fresh, readAtMs } = delivery
  if (fresh === null) return null
  const ageMs = performance.now() - readAtMs
  if (ageMs > FRESH_MS || watch.hasChangedSince(webhookId, readAtMs)) return null
  const { body, secret } = fresh
  return { state: 'in_progress', asked: false, claims: 1, ageMs, webhookId, eventKey, url, secret, body }
}

/** Its webhook has no open incident, and its endpoint has neither failed nor been slow since that was read. */
export function isWell({ webhookId, troubled, readAtMs }: DeliveryToStart, watch: WebhookWatch): boolean {
  return !troubled && watch.isWell(webhookId, readAtMs)
}

function bytesOf({ fresh }: DeliveryToStart): number {
  return fresh?.body.length ?? 0
}
