import { MAX_ATTEMPTS } from './retry-schedule.ts'
import type { DeliveryState, FinalState } from './delivery-state.ts'

/** Why an attempt was made: by the schedule, or as a retry that a user requested. */
export type AttemptTrigger = 'schedule' | 'retry'

/**
 * The closed set of failure codes that customers see, each with what it means and what to do about it: the text of
 * docs/troubleshooting.md, of the OpenAPI document, and of the failures that the API groups by cause, which the developer
 * area shows. None carries an internal address. `worker_lost`: the attempt lost its worker repeatedly.
 */
export const FAILURE_TEXTS = {
  http_status: {
    cause: 'The endpoint answered with another status than 2xx.',
    cure: 'Look the request up in the log of the endpoint by its X-Webhook-Event-ID, correct what refused it, and answer 2xx as soon as the event is stored. A redirect is not followed: change the URL of the webhook.',
  },
  timeout: {
    cause: 'The endpoint did not answer in time: within 15 seconds, unless the operator sets another limit.',
    cure: 'Store the event, answer 2xx at once, and do the work afterwards.',
  },
  connect_timeout: {
    cause: 'No connection to the endpoint could be set up in time.',
    cure: 'Check that the host is up, and that no firewall drops connections from this service.',
  },
  connect_refused: {
    cause: 'The host of the endpoint refused the connection.',
    cure: 'Start the server of the endpoint, or correct the port in the URL.',
  },
  connection_reset: {
    cause: 'The connection broke before the endpoint had answered.',
    cure: 'Look for crashes and restarts of the server, and for a proxy in front of it that closes connections early.',
  },
  tls_error: {
    cause: 'No trusted TLS connection to the endpoint could be set up.',
    cure: 'Install a valid certificate of a public authority for this host name, with its intermediate certificates.',
  },
  dns_error: {
    cause: 'The host name of the endpoint could not be resolved.',
    cure: 'Correct the host name in the URL, or its DNS records.',
  },
  dns_timeout: {
    cause: 'The DNS servers of the host name did not answer in time.',
    cure: 'Check the DNS servers of the domain.',
  },
  blocked_target: {
    cause: 'The host of the endpoint is not on the public internet.',
    cure: 'Use a host with a public address. The operator can open the range of a private one.',
  },
  invalid_response: {
    cause: 'The answer of the endpoint is not valid HTTP/1.1.',
    cure: 'Check that the URL names an HTTP server, and what a proxy in front of it does to answers.',
  },
  network_error: {
    cause: 'The network failed on the way to the endpoint, such as without a route or a free socket.',
    cure: 'Check the network of the host. If other endpoints fail in the same way, the operator checks that of this service.',
  },
  worker_lost: {
    cause: 'The attempt lost its worker five times before an outcome was recorded, and is not sent again.',
    cure: 'Check at the endpoint whether the event arrived. The operator finds out why the workers ended.',
  },
} as const satisfies Record<string, { cause: string; cure: string }>

export type FailureCode = keyof typeof FAILURE_TEXTS

export const FAILURE_CODES = Object.keys(FAILURE_TEXTS) as FailureCode[]

export const TIMEOUT_CODES: readonly FailureCode[] = ['timeout', 'connect_timeout', 'dns_timeout']

/** True when the endpoint, or the way to it, gave no answer until a deadline passed. */
export function isTimeout(code: FailureCode | null): boolean {
  return code !== null && TIMEOUT_CODES.includes(code)
}

/** A receiver confirms with any 2xx status; everything else is a failed attempt (spec 4.4). */
export function isSuccessStatus(status: number): boolean {
  return status >= 200 && status <= 299
}

/** Returns the state of a delivery after attempt `number`, for a webhook that is still enabled. */
export function stateAfterAttempt(
  succeeded: boolean,
  number: number,
): Extract<DeliveryState, 'completed' | 'waiting' | 'failed'> {
  if (succeeded) return 'completed'
  return number < MAX_ATTEMPTS ? 'waiting' : 'failed'
}

/** The outcome of a requested attempt for its workflow: the recorded state of the delivery, and its attempts so far. */
export type AttemptOutcome = DeferredAttempt | RowOutcome

/** The outcome as the row of the delivery has it. */
export type RowOutcome = WaitingOutcome | FinalOutcome

/** No attempt was made, since no slot of the endpoint was free: it is to be requested again after `delayMs`. */
type DeferredAttempt = { state: 'deferred'; delayMs: number }

/**
 * The delivery waits for its next attempt: one has failed, or none was made, since it is not due yet. `dueAtMs`: when it
 * is due, in Unix ms of the database's clock. `dueInMs`: the rest by that clock when this is returned.
 */
export type WaitingOutcome = {
  state: 'waiting'
  attempts: number
  dueAtMs: number
  dueInMs: number
  failureCode: FailureCode | null
  statusCode: number | null
}

/** No attempt follows, unless a user requests one. */
type FinalOutcome = {
  state: FinalState
  attempts: number
  failureCode: FailureCode | null
  statusCode: number | null
}

/**
 * An attempt to be made. `dueAtMs`: when, in Unix ms of the database's clock; null: at once, if the row is due by that
 * clock.
 */
export type NextAttempt = { number: number; dueAtMs: number | null }

/** An attempt for which a workflow is started, and in how many ms it is due; without `waitMs` by Temporal's clock. */
export type AttemptToStart = NextAttempt & { waitMs?: number }

/** Returns the attempt after a failed one. */
export function nextAttempt({ attempts, dueAtMs, dueInMs }: WaitingOutcome): Required<AttemptToStart> {
  return { number: attempts + 1, dueAtMs, waitMs: dueInMs }
}

/** Returns the next attempt of a delivery as its row was read. */
export function attemptOfRow(row: {
  attempts: number
  nextAttemptAt: Date | null
  dueInMs: number
}): AttemptToStart {
  const number = row.attempts + 1
  return row.nextAttemptAt === null
    ? { number, dueAtMs: null }
    : { number, dueAtMs: row.nextAttemptAt.getTime(), waitMs: row.dueInMs }
}

/** Describes why an attempt failed: `HTTP 503`, `timeout`; null when it did not. */
export function describeFailure(outcome: {
  failureCode: FailureCode | null
  statusCode: number | null
}): string | null {
  if (outcome.failureCode === 'http_status' && outcome.statusCode !== null)
    return `HTTP ${outcome.statusCode}`
  return outcome.failureCode?.replaceAll('_', ' ') ?? null
}

/** Describes the outcome of an attempt: `HTTP 503`, `timeout`, `confirmed with HTTP 200`. */
export function describeOutcome(outcome: Pick<RowOutcome, 'state' | 'failureCode' | 'statusCode'>): string {
  return (
    describeFailure(outcome) ??
    (outcome.state === 'completed'
      ? `confirmed with HTTP ${outcome.statusCode ?? 200}`
      : 'no attempt was made')
  )
}

/**
 * The task queues of attempts, each with slots of its own, so that none waits for another: `first` attempts at fast
 * endpoints; their `retry` attempts; `slow`, every attempt at an endpoint that is slow, or that never answered.
 */
export type AttemptQueue = 'first' | 'retry' | 'slow'

/** An endpoint that takes longer to answer is slow. */
export const SLOW_POST_MS = 1_000

/** Returns the name of the task queue. Workflows share that of first attempts. */
export function attemptQueue(taskQueue: string, queue: AttemptQueue): string {
  return queue === 'first' ? taskQueue : `${taskQueue}-${queue}`
}

/** What a workflow requests of a worker: attempt `number` of a delivery. */
export type AttemptRequest = {
  organisationId: string
  webhookId: string
  deliveryId: string
  /** 1-based. */
  number: number
  /** The instant to wait for, in Unix ms of the database's clock; null: the row is claimed at once, if it is due. */
  dueAtMs: number | null
  /** How long the worker waits for that instant at most. */
  maxWaitMs: number
  /** The task queue of the request: only a `slow` attempt is made at a slow endpoint. */
  queue: AttemptQueue
}
