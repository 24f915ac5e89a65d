import type { AttemptOutcome, WaitingOutcome } from './attempt-outcome.ts'
import type { AttemptRequest, AttemptQueue } from './attempt-outcome.ts'
import { waitAfterAttempt } from './retry-schedule.ts'

// Requests and outcomes as release 0.1 had them, in histories of deliveries that wait. This file goes with release 2.0,
// which continues no workflow of 0.x.

/** Kinds of attempts: `unproven`, first attempts at an endpoint that never answered. */
export type OldAttemptKind = AttemptQueue | 'unproven'

export type OldAttemptRequest = Omit<AttemptRequest, 'dueAtMs' | 'maxWaitMs' | 'queue'> & {
  waitUntil: { dueAtMs: number; maxWaitMs: number } | null
  onlyIfDue: boolean
  kind: OldAttemptKind
}

/**
 * `endedAtMs`: when the latest attempt ended, in Unix ms of the database's clock. `sinceEndMs`: how long ago that was.
 * `immediately`: a user requested the next attempt at once.
 */
type OldFields = { endedAtMs: number; sinceEndMs: number; immediately: boolean }

export type OldWaitingOutcome = Omit<WaitingOutcome, 'dueAtMs' | 'dueInMs'> & OldFields

/** Workflows of 0.1 subtracted only a longer delay of the report from the wait. */
const MAX_REPORT_DELAY_MS = 1_000

/** Returns the task queue of a kind. */
export function queueOfKind(kind: OldAttemptKind): AttemptQueue {
  return kind === 'unproven' ? 'slow' : kind
}

/** Returns when the next attempt is due, and in how many ms; an old outcome leads to the timers that it led to in 0.1. */
export function dueOf(outcome: WaitingOutcome | OldWaitingOutcome): {
  dueAtMs: number | null
  dueInMs: number
} {
  if ('dueInMs' in outcome) return { dueAtMs: outcome.dueAtMs, dueInMs: outcome.dueInMs }
  const { attempts, endedAtMs, sinceEndMs, immediately } = outcome
  if (immediately) return { dueAtMs: null, dueInMs: 0 }
  const waitMs = waitAfterAttempt(attempts) ?? 0
  const reportDelayMs = sinceEndMs > MAX_REPORT_DELAY_MS ? sinceEndMs : 0
  return { dueAtMs: endedAtMs + waitMs, dueInMs: waitMs - reportDelayMs }
}

/** Completes an outcome with the fields that workflows of 0.1 read; they come to the same instant. */
export function withOldFields(outcome: AttemptOutcome): AttemptOutcome {
  if (outcome.state !== 'waiting') return outcome
  const { attempts, dueAtMs, dueInMs } = outcome
  const waitMs = waitAfterAttempt(attempts) ?? 0
  const old: OldFields = { endedAtMs: dueAtMs - waitMs, sinceEndMs: waitMs - dueInMs, immediately: false }
  return { ...outcome, ...old }
}

/** Returns the request of a workflow of any release. An old one that is to be made at once is made if it is due. */
export function toAttemptRequest(request: AttemptRequest | OldAttemptRequest): AttemptRequest {
  if (!('kind' in request)) return request
  const { organisationId, webhookId, deliveryId, number, waitUntil, kind } = request
  const { dueAtMs, maxWaitMs } = waitUntil ?? { dueAtMs: null, maxWaitMs: 0 }
  return { organisationId, webhookId, deliveryId, number, dueAtMs, maxWaitMs, queue: queueOfKind(kind) }
}
