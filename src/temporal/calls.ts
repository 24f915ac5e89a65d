import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import {
  WorkflowExecutionAlreadyStartedError,
  type Client,
  isGrpcServiceError,
  NamespaceNotFoundError,
  WorkflowNotFoundError,
  type WorkflowClientInterceptor,
} from '@temporalio/client'
import { raceAbort } from '../timers.ts'

const CALL_TIMEOUT_MS = 5_000

/** Temporal refuses to start a workflow id again within a second of its last start. */
const START_RETRY_DELAY_MS = 1_100
const MAX_START_TRIES = 3

/** Runs a call to Temporal, over a client or a connection, under a deadline. */
export function withCallTimeout<T>(
  client: Pick<Client, 'withDeadline'>,
  call: () => Promise<T>,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<T> {
  return client.withDeadline(Date.now() + timeoutMs, call)
}

/** Starts a workflow; returns false when one of that id has started already. */
export async function startOnce(client: Client, start: () => Promise<unknown>): Promise<boolean> {
  try {
    await withCallTimeout(client, start)
    return true
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false
    throw error
  }
}

/** Runs `signal`, a signal-with-start; repeats it where Temporal refuses to start the workflow so soon again. */
export async function signalWithStart(client: Client, signal: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await withCallTimeout(client, signal)
      return
    } catch (error) {
      if (tries === MAX_START_TRIES || !hasGrpcCode(error, 'RESOURCE_EXHAUSTED')) throw error
      await delay(START_RETRY_DELAY_MS)
    }
  }
}

/**
 * Waits for `promise` at most `timeoutMs`, or until `signal` aborts, and then throws. A later result is passed to `dispose`,
 * so that nothing stays open.
 */
export async function withTimeLimit<T>(
  promise: Promise<T>,
  limits: { what: string; timeoutMs: number; signal: AbortSignal },
  dispose: (late: T) => Promise<void>,
): Promise<T> {
  const { what, timeoutMs, signal } = limits
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  try {
    return await raceAbort(promise, limit)
  } catch (error) {
    promise.then(dispose).catch(() => undefined)
    throw error === limit.reason ? new Error(`${what} took too long`) : error
  }
}

/** Returns the result of a call about a workflow, or `none` when there is no such workflow, or no more. */
export async function orIfGone<T>(none: T, client: Client, call: () => Promise<T>): Promise<T> {
  try {
    return await withCallTimeout(client, call)
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return none
    throw error
  }
}

/** Thrown when Temporal could not be reached; the call itself is valid. */
export class TemporalUnavailableError extends Error {
  override readonly name = 'TemporalUnavailableError'
}

/** The status codes of gRPC that Posthorn distinguishes (github.com/grpc/grpc, doc/statuscodes.md). */
const CODES = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
}

/** True when a call to Temporal ended with one of these codes; the client may have wrapped its error. */
export function hasGrpcCode(error: unknown, ...codes: (keyof typeof CODES)[]): boolean {
  if (isGrpcServiceError(error)) return codes.some((code) => CODES[code] === (error.code as number))
  return error instanceof Error && error.cause !== undefined && hasGrpcCode(error.cause, ...codes)
}

/** True when Temporal is unavailable, and the same call may well succeed later. */
export function isTemporalUnavailable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof TemporalUnavailableError) return true
  return hasGrpcCode(error, 'CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE')
}

/** True when the API key of this process does not permit the call, or Temporal does not implement it. */
export function isNotPermitted(error: unknown): boolean {
  return hasGrpcCode(error, 'PERMISSION_DENIED', 'UNIMPLEMENTED')
}

/** True when Temporal does not accept the identity of this process, or does not permit it the call. */
export function isAccessRefused(error: unknown): boolean {
  return hasGrpcCode(error, 'PERMISSION_DENIED', 'UNAUTHENTICATED')
}

/**
 * Checks the namespace at once when Temporal refuses a start because it does not know a name in it. Where `isIncomplete`
 * finds that something is missing, the start throws TemporalUnavailableError: it is accepted a little later.
 */
export function checkRefusedStarts(isIncomplete: () => Promise<boolean>): WorkflowClientInterceptor {
  async function checked<T>(start: Promise<T>): Promise<T> {
    try {
      return await start
    } catch (error) {
      if (!isUnknownName(error) || !(await isIncomplete())) throw error
      throw new TemporalUnavailableError('the namespace is incomplete', { cause: error })
    }
  }
  return {
    startWithDetails: (input, next) => checked(next(input)),
    signalWithStart: (input, next) => checked(next(input)),
  }
}

function isUnknownName(error: unknown): boolean {
  if (error instanceof NamespaceNotFoundError || error instanceof WorkflowNotFoundError) return true
  // The error for an unknown search attribute.
  return hasGrpcCode(error, 'INVALID_ARGUMENT')
}

/** The results of the calls for some rows, and the rows that were not called or whose call failed. */
type CallResults<Row, Result> = { done: { row: Row; result: Result }[]; left: Row[] }

/** The sweeper has a pass each second. */
const CALLS_TIMEOUT_MS = 8_000

/**
 * Calls Temporal for each row, `concurrency` at once, until CALLS_TIMEOUT_MS are over or a call finds Temporal unavailable.
 * Reports each failure to `onFailed`; never rejects.
 */
export async function callForEach<Row, Result>(
  rows: readonly Row[],
  call: (row: Row) => Promise<Result>,
  options: { concurrency: number; onFailed: (row: Row, error: unknown) => void },
): Promise<CallResults<Row, Result>> {
  const deadlineMs = performance.now() + CALLS_TIMEOUT_MS
  let isUnavailable = false
  const results: CallResults<Row, Result> = { done: [], left: [] }
  await pLimit(options.concurrency).map(rows, async (row) => {
    if (isUnavailable || performance.now() > deadlineMs) {
      results.left.push(row)
      return
    }
    try {
      results.done.push({ row, result: await call(row) })
    } catch (error) {
      isUnavailable ||= isTemporalUnavailable(error)
      results.left.push(row)
      options.onFailed(row, error)
    }
  })
  return results
}
