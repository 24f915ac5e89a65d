import { CancellationScope } from '@temporalio/workflow'

/**
 * Runs a workflow that cancellation does not end: no timer and no activity is cancelled. `isCancelRequested` tells it to
 * continue as new, which leaves the request behind. A cancelled run would leave its row without a workflow until the
 * sweeper finds it.
 */
export function outlastCancellation<Result>(
  run: (isCancelRequested: () => boolean) => Promise<Result>,
): Promise<Result> {
  let isCancelRequested = false
  CancellationScope.current().cancelRequested.catch(() => {
    isCancelRequested = true
  })
  return CancellationScope.nonCancellable(() => run(() => isCancelRequested))
}
