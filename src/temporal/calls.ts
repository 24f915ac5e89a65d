import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client'

/** A call to the engine that takes longer than this is given up and made again later. */
const CALL_TIMEOUT_MS = 5_000

/** Runs a call to the engine under a deadline. */
export function inTime<T>(client: Client, call: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + CALL_TIMEOUT_MS, call)
}

/** Starts a workflow; one that the engine says has started already counts as started. */
export async function startOnce(client: Client, start: () => Promise<unknown>): Promise<void> {
  try {
    await inTime(client, start)
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
  }
}
