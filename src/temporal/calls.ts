import { setTimeout as delay } from 'node:timers/promises'
import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client'
import { hasGrpcCode } from './grpc-errors.ts'

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
  let giveUp: () => void = () => undefined
  const givenUp = new Promise<never>((_resolve, reject) => {
    giveUp = () => reject(new Error(`${what} took too long`))
    if (limit.aborted) giveUp()
    else limit.addEventListener('abort', giveUp, { once: true })
  })
  try {
    return await Promise.race([promise, givenUp])
  } catch (error) {
    promise.then(dispose).catch(() => undefined)
    throw error
  } finally {
    limit.removeEventListener('abort', giveUp)
  }
}
