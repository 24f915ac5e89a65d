import { CancellationScope, continueAsNew, sleep, workflowInfo } from '@temporalio/workflow'

/**
 * Options of all activities. They throw only for faults of ours, and are retried without an end: a receiver's failure is
 * an outcome. The heartbeat detects a lost worker within ten seconds; the long timeout is for a database that is
 * unavailable.
 */
export const ACTIVITY_OPTIONS = {
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
} as const

/**
 * Runs a workflow that cancellation does not end: no timer and no activity is cancelled. `isCancelRequested` tells it to
 * continue as new, which leaves the request behind. A cancelled run would leave its row without a workflow until the
 * sweeper finds it.
 */
export function ignoreCancellation<Result>(
  run: (isCancelRequested: () => boolean) => Promise<Result>,
): Promise<Result> {
  let isCancelRequested = false
  CancellationScope.current().cancelRequested.catch(() => {
    isCancelRequested = true
  })
  return CancellationScope.nonCancellable(() => run(() => isCancelRequested))
}

const MAX_DELAY_MS = 5_000
/** A webhook may be disabled for weeks. */
const MAX_REFUSED_DELAY_MS = 60_000

/**
 * Runs `step` until it is done. The delay between two steps is doubled while none of them advances. A cancelled run, and one
 * with a long history, is succeeded by another after its step.
 */
export function runInSteps(
  input: object,
  minDelayMs: number,
  step: () => Promise<{ isDone: boolean; hasAdvanced: boolean; isRefused?: boolean }>,
): Promise<void> {
  return ignoreCancellation(async (isCancelRequested) => {
    let delayMs = minDelayMs
    for (;;) {
      const { isDone, hasAdvanced, isRefused } = await step()
      if (isDone) return
      const maxDelayMs = isRefused ? MAX_REFUSED_DELAY_MS : MAX_DELAY_MS
      delayMs = hasAdvanced ? minDelayMs : Math.min(delayMs * 2, maxDelayMs)
      await sleep(delayMs, { summary: 'until the next step' })
      if (isCancelRequested() || workflowInfo().continueAsNewSuggested)
        await continueAsNew<(input: object) => Promise<void>>(input)
    }
  })
}
