import { setTimeout as delay } from 'node:timers/promises'
import { isGrpcServiceError, WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client'

/** A call to the engine that takes longer than this is given up and made again later. */
const CALL_TIMEOUT_MS = 5_000

/** The engine refuses to start an id again within a second of its last start. */
const START_AGAIN_AFTER_MS = 1_100
const START_TRIES = 3
const RESOURCE_EXHAUSTED: unknown = 8

/** Runs a call to the engine under a deadline. */
export function inTime<T>(client: Client, call: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + CALL_TIMEOUT_MS, call)
}

/** Starts a workflow; false when one of that id has started already. */
export async function startOnce(client: Client, start: () => Promise<unknown>): Promise<boolean> {
  try {
    await inTime(client, start)
    return true
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false
    throw error
  }
}

/** Runs a signal that starts its workflow where none runs; again where the engine finds that too soon. */
export async function signalWithStart(client: Client, signal: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await inTime(client, signal)
      return
    } catch (error) {
      if (tries === START_TRIES || !isTooSoon(error)) throw error
      await delay(START_AGAIN_AFTER_MS)
    }
  }
}

function isTooSoon(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return isGrpcServiceError(cause) && cause.code === RESOURCE_EXHAUSTED
}
