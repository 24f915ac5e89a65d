import type { EntityManager } from 'typeorm'
import { closeResolvedIncident, openIncident } from '../../db/queries/incidents.ts'
import { isTimeout } from '../../domain/attempt-outcome.ts'
import type { IncidentLabel } from '../../domain/workflow-inputs.ts'
import { newId } from '../../ids.ts'
import type { Changed } from '../../incidents/change-incident.ts'
import {
  recordFailures,
  recordSuccesses,
  type FailedAttempt,
  type FollowAfter,
  type RecordedFailure,
  type RecordedSuccess,
} from '../protocol/record-attempts.ts'

/** An attempt, and what follows it where its webhook still takes such deliveries. */
export type EndedAttempt = Omit<FailedAttempt, 'next'> & { next: 'completed' | FailedAttempt['next'] }

/** `result` is null where there was nothing to record: see `recordSuccesses` and `recordFailures`. */
export type RecordedAttempt = Changed<RecordedSuccess | RecordedFailure | null>

/**
 * Records attempts of one webhook. Failures that leave a delivery waiting or failed open its incident or update the open
 * one. Successes close it if no delivery is left unresolved. The attempt that changed the incident has it to signal. The
 * caller holds the lock of the webhook.
 */
export async function recordAttempts(
  manager: EntityManager,
  of: { organisationId: string; webhookId: string },
  attempts: readonly EndedAttempt[],
  followAfterMs: FollowAfter,
): Promise<RecordedAttempt[]> {
  // Failures first: what they leave unresolved keeps the incident open.
  const failing = attempts.filter(hasFailed)
  const failures = await recordFailures(manager, failing, followAfterMs)
  const changing = failing.filter((_, index) => failures[index]?.changesIncident === true)
  const isExhausted = failures.some(
    (failure) => failure?.changesIncident === true && failure.state === 'failed',
  )
  const opened =
    changing.length === 0 ? null : await openIncident(manager, { id: newId(), ...of }, isExhausted)

  const succeeding = attempts.filter((attempt) => !hasFailed(attempt))
  const successes = await recordSuccesses(manager, succeeding, followAfterMs)
  const resolving = succeeding.find((_, index) => successes[index]?.isCounted === true)
  const closed = resolving === undefined ? null : await closeResolvedIncident(manager, of.webhookId)

  // Time-outs leave the signal to the sweeper: another failure sends it at once.
  const opening = changing.find(({ failureCode }) => !isTimeout(failureCode)) ?? changing[0]
  const changedBy = closed === null ? opening : resolving
  const signals = new Map<EndedAttempt | undefined, IncidentLabel | null>([[changedBy, closed ?? opened]])
  const results = new Map<EndedAttempt, RecordedAttempt['result']>()
  failing.forEach((attempt, index) => results.set(attempt, failures[index] ?? null))
  succeeding.forEach((attempt, index) => results.set(attempt, successes[index] ?? null))
  return attempts.map((attempt) => ({
    result: results.get(attempt) ?? null,
    toSignal: signals.get(attempt) ?? null,
  }))
}

function hasFailed(attempt: EndedAttempt): attempt is FailedAttempt {
  return attempt.next !== 'completed'
}
