import { MAX_ATTEMPTS } from './retry-schedule.ts'
import type { DeliveryState } from './delivery-state.ts'

/** Why an attempt was made: the schedule's turn, or a person's retry. */
export type AttemptTrigger = 'schedule' | 'retry'

/**
 * The closed set of reasons an attempt can fail for, as customers see it. None carries an internal address.
 * `worker_lost`: the delivery lost its worker again and again while this attempt was made.
 */
export const FAILURE_CODES = [
  'http_status',
  'timeout',
  'connect_timeout',
  'connect_refused',
  'connection_reset',
  'tls_error',
  'dns_error',
  'dns_timeout',
  'blocked_target',
  'invalid_response',
  'network_error',
  'worker_lost',
] as const

export type FailureCode = (typeof FAILURE_CODES)[number]

/** True when the endpoint, or the way to it, gave no answer until a deadline passed. */
export function isTimeout(code: FailureCode | null): boolean {
  return code === 'timeout' || code === 'connect_timeout' || code === 'dns_timeout'
}

/** A receiver confirms with any 2xx status; everything else is a failed attempt (spec 4.4). */
export function isSuccessStatus(status: number): boolean {
  return status >= 200 && status <= 299
}

/** State of a delivery once attempt `number` has ended, for a webhook that is still enabled. */
export function stateAfterAttempt(
  succeeded: boolean,
  number: number,
): Extract<DeliveryState, 'completed' | 'waiting' | 'failed'> {
  if (succeeded) return 'completed'
  return number < MAX_ATTEMPTS ? 'waiting' : 'failed'
}

/**
 * What an attempt left behind, as the workflow is told: the delivery's recorded state and `attempts` so far.
 * `endedAtMs` is when the latest attempt ended, in Unix ms of the database's clock; the next wait counts from it.
 * `immediately`: a person asked for the next attempt at once.
 * `sinceEndMs` is how long ago that was when this was reported.
 */
export type AttemptOutcome =
  | DeferredAttempt
  | {
      state: 'completed' | 'failed' | 'stopped'
      attempts: number
      failureCode: FailureCode | null
      statusCode: number | null
    }
  | {
      state: 'waiting'
      attempts: number
      endedAtMs: number
      sinceEndMs: number
      immediately: boolean
      failureCode: FailureCode | null
      statusCode: number | null
    }

/** Too many attempts to the same webhook were under way: nothing was made, it is to be tried again after `delayMs`. */
export type DeferredAttempt = { state: 'deferred'; delayMs: number }

/** Why an attempt failed, in a few words: `HTTP 503`, `timeout`; null when it did not. */
export function describeFailure(outcome: {
  failureCode: FailureCode | null
  statusCode: number | null
}): string | null {
  if (outcome.failureCode === 'http_status' && outcome.statusCode !== null)
    return `HTTP ${outcome.statusCode}`
  return outcome.failureCode?.replaceAll('_', ' ') ?? null
}

/** The outcome of an attempt in a few words: `HTTP 503`, `timeout`, `confirmed`. */
export function describeOutcome(
  outcome: Pick<Exclude<AttemptOutcome, DeferredAttempt>, 'state' | 'failureCode' | 'statusCode'>,
): string {
  return (
    describeFailure(outcome) ??
    (outcome.state === 'completed'
      ? `confirmed with HTTP ${outcome.statusCode ?? 200}`
      : 'no attempt was made')
  )
}
