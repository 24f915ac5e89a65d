import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { findDeliveryStatus, type DeliveryStatus } from '../../db/queries/deliveries.ts'
import { retryWhileUnavailable } from '../../db/connection/connection-errors.ts'
import type { AttemptOutcome, AttemptRequest, RowOutcome } from '../../domain/attempt-outcome.ts'
import { isFinal } from '../../domain/delivery-state.ts'
import { claimAttempts, releaseRuns, type Claim } from '../protocol/claim.ts'
import type { CommandDependencies } from '../../webhooks/webhook-locks.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { stopUnwanted } from '../protocol/change-deliveries.ts'

/** The longest interval at which a run tries to claim a row: most are released before the lease of another run ends. */
const CLAIM_INTERVAL_MS = 250

/**
 * No POST begins longer after its claim: the webhook may have been switched off meanwhile, and the lease has to outlast
 * the POST.
 */
export const MAX_CLAIM_AGE_MS = 1_000

export function isFresh({ claimedAtMs }: Pick<Claim, 'claimedAtMs'>, nowMs = performance.now()): boolean {
  return nowMs - claimedAtMs < MAX_CLAIM_AGE_MS
}

/**
 * Claims the row for a run of this attempt, after the lease of another run has ended and the row is due by the database's
 * clock; or returns the outcome on the row, or `deferred` while another run renews its lease. Stops the delivery where its
 * webhook does not take it any more.
 */
export async function claimAttempt(
  dependencies: StopDependencies,
  request: AttemptRequest,
  { leaseMs, isWorkflow }: { leaseMs: number; isWorkflow: boolean },
  signal: AbortSignal,
): Promise<Claim | AttemptOutcome> {
  const { dataSource } = dependencies
  const { organisationId, deliveryId, number } = request
  const waitUntilMs = performance.now() + leaseMs
  let pauseMs = 0
  for (;;) {
    signal.throwIfAborted()
    const owner = randomUUID()
    const run = { organisationId, deliveryId, number, owner, isWorkflow }
    let isRepeated = false
    const [claim = null] = await retryWhileUnavailable(async () => {
      // The answer to the first try may have been lost.
      if (isRepeated) await releaseRuns(dataSource, [{ deliveryId, owner, hasPosted: false }])
      isRepeated = true
      return claimAttempts(dataSource, [run], leaseMs)
    }, signal)
    if (claim !== null) return claim
    const status = await retryWhileUnavailable(() => findDeliveryStatus(dataSource, request), signal)
    if (status !== null && isUnwanted(status)) {
      await retryWhileUnavailable(() => stopRefused(dependencies, request), signal)
      continue
    }
    // A row that is free has become so just now, or is locked: for a moment, or for long by a change of many rows.
    pauseMs = status !== null && isFree(status) ? Math.min(2 * pauseMs || 1, CLAIM_INTERVAL_MS) : 0
    const waitMs = status === null ? null : waitForRow(status, request, pauseMs)
    if (waitMs === null) return outcomeOfRow(status, number)
    // The run that has the row has ended its POST, and renews its lease until the outcome is recorded.
    if (status?.state === 'in_progress' && performance.now() > waitUntilMs)
      return { state: 'deferred', delayMs: leaseMs }
    await delay(waitMs, undefined, { signal })
  }
}

/** The webhook does not take the delivery, and no run has it. */
function isUnwanted({ state, isTaken, leasedForMs }: DeliveryStatus): boolean {
  return !isTaken && !isFinal(state) && leasedForMs === 0
}

/** By its time, or its lease. */
function isFree({ state, dueInMs, leasedForMs }: DeliveryStatus): boolean {
  return state === 'waiting' ? dueInMs <= 0 : leasedForMs <= 0
}

/**
 * Returns after how many ms to claim the row again: one that is free after `pauseMs`; null when this run is not to wait
 * for it.
 */
function waitForRow(
  status: DeliveryStatus,
  { number, maxWaitMs }: AttemptRequest,
  pauseMs: number,
): number | null {
  const { state, attempts, dueInMs, leasedForMs } = status
  if (isFinal(state) || attempts !== number - 1) return null
  if (isFree(status)) return pauseMs
  if (state !== 'waiting') return Math.min(leasedForMs + 1, CLAIM_INTERVAL_MS)
  // A longer rest is the workflow's: it was woken before its time, or the clocks differ by so much.
  return dueInMs > maxWaitMs ? null : Math.ceil(dueInMs)
}

/**
 * Returns the outcome on the rows when attempt `number` is not to be made: it is recorded or not due, or the delivery is
 * final or deleted. Rows that are behind, of an older database that was restored, lead back to their own next attempt.
 */
export function outcomeOfRow(status: DeliveryStatus | null, number: number): RowOutcome {
  if (status === null) return { state: 'stopped', attempts: number - 1, failureCode: null, statusCode: null }
  const { state, attempts, dueAt, dueInMs, nowMs, recorded } = status
  const codes = { failureCode: recorded?.failureCode ?? null, statusCode: recorded?.statusCode ?? null }
  switch (state) {
    case 'completed':
    case 'failed':
    case 'stopped':
      return { state, attempts, ...codes }
    case 'waiting':
    case 'pending':
    case 'in_progress':
      return {
        state: 'waiting',
        attempts,
        dueAtMs: dueAt?.getTime() ?? nowMs,
        dueInMs: Math.max(0, dueInMs),
        ...codes,
      }
  }
}

export type StopDependencies = CommandDependencies & { metrics: Pick<Metrics, 'deliveriesStopped'> }

/**
 * Stops the deliveries that a webhook does not take, under its lock and in its organisation's share: a claim of one of
 * them was refused. The sweeper signals an incident that this closes.
 */
export async function stopRefused(
  { dataSource, locks, metrics }: StopDependencies,
  { organisationId, webhookId }: { organisationId: string; webhookId: string },
): Promise<void> {
  const of = { organisationId, webhookId }
  const { stopped } = await locks.transact(dataSource, of, (manager) => stopUnwanted(manager, of))
  metrics.deliveriesStopped(stopped)
}
