import type { EntityManager } from 'typeorm'
import { closeResolvedIncident, openIncident } from '../db/queries/incidents.ts'
import {
  recordFailures,
  recordSuccesses,
  type EndedAttempt,
  type RecordedFailure,
  type RecordedSuccess,
} from '../db/queries/outcomes.ts'
import { isTimeout } from '../domain/attempt-outcome.ts'
import type { IncidentLabel } from '../domain/workflow-labels.ts'
import { newId } from '../ids.ts'

/** What changed, and the incident whose workflow is to be signalled; null where nothing concerns it. */
export type Changed<T> = { result: T; toSignal: IncidentLabel | null }

/** `result` is null where there was nothing to record: see `recordSuccesses` and `recordFailures`. */
export type RecordedAttempt = Changed<RecordedSuccess | RecordedFailure | null>

/**
 * Records attempts of one webhook. Failures open its incident or update the open one, unless the webhook does not take
 * the delivery any more. Successes close it if no delivery is left unresolved. The attempt that changed the incident has
 * it to signal. The caller holds the lock of the webhook, here and below.
 */
export async function recordAttempts(
  manager: EntityManager,
  of: { organisationId: string; webhookId: string },
  attempts: readonly EndedAttempt[],
  hasBackfill: boolean,
): Promise<RecordedAttempt[]> {
  // Failures first: what they leave unresolved keeps the incident open.
  const failing = attempts.filter(({ next }) => next !== 'completed')
  const failures = await recordFailures(manager, failing)
  const changing = failing.filter((_, index) => failures[index]?.changesIncident === true)
  const isExhausted = failures.some(
    (failure) => failure?.changesIncident === true && failure.state === 'failed',
  )
  const opened =
    changing.length === 0 ? null : await openIncident(manager, { id: newId(), ...of }, isExhausted)

  const succeeding = attempts.filter(({ next }) => next === 'completed')
  const successes = await recordSuccesses(manager, succeeding, hasBackfill)
  const resolving = succeeding.find((_, index) => successes[index]?.isCounted === true)
  const closed = resolving === undefined ? null : await closeResolvedIncident(manager, of.webhookId)

  // Time-outs leave the signal to the sweeper: another failure sends it at once.
  const opening = changing.find(({ failureCode }) => !isTimeout(failureCode)) ?? changing[0]
  const changedBy = closed === null ? opening : resolving
  const results = new Map<EndedAttempt, RecordedAttempt['result']>()
  failing.forEach((attempt, index) => results.set(attempt, failures[index] ?? null))
  succeeding.forEach((attempt, index) => results.set(attempt, successes[index] ?? null))
  return attempts.map((attempt) => ({
    result: results.get(attempt) ?? null,
    toSignal: attempt === changedBy ? (closed ?? opened) : null,
  }))
}

/**
 * Discards deliveries of the webhook by `discard`, and closes its incident if none is left unresolved. Where `discard`
 * returns null or 0 it discarded nothing, and the incident stays as it is.
 */
export async function closeIfResolved<T>(
  manager: EntityManager,
  webhookId: string,
  discard: () => Promise<T>,
): Promise<Changed<T>> {
  const result = await discard()
  const hasDiscarded = result !== null && result !== 0
  return { result, toSignal: hasDiscarded ? await closeResolvedIncident(manager, webhookId) : null }
}
