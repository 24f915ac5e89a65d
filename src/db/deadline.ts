import { DatabaseBusyError } from './connection-errors.ts'

/** A caller that waits for its work to be begun, and then for its result. */
export type Deadline<Result> = {
  /** Called when the work begins. False when the caller has been rejected: the work is not to be done. */
  begin: () => boolean
  resolve: (result: Result) => void
  reject: (reason: unknown) => void
}

/**
 * Calls `wait` and returns its result. Rejects with DatabaseBusyError when the work has not begun within
 * `startTimeoutMs`, or gives no result within `timeoutMs`.
 */
export function withDeadline<Result>(
  { startTimeoutMs, timeoutMs }: { startTimeoutMs: number; timeoutMs: number },
  wait: (deadline: Deadline<Result>) => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let isBegun = false
    let hasTimedOut = false
    const timeOut = (afterMs: number): void => {
      hasTimedOut = true
      const waitedFor = isBegun ? 'no result from' : 'no turn at'
      reject(new DatabaseBusyError(`${waitedFor} the database within ${afterMs} ms`, { isBegun }))
    }
    let timer = setTimeout(() => {
      if (!isBegun || timeoutMs <= startTimeoutMs) return timeOut(startTimeoutMs)
      timer = setTimeout(() => timeOut(timeoutMs), timeoutMs - startTimeoutMs)
    }, startTimeoutMs)
    wait({
      begin: () => (isBegun = !hasTimedOut),
      resolve(result) {
        clearTimeout(timer)
        resolve(result)
      },
      reject(reason) {
        clearTimeout(timer)
        reject(reason instanceof Error ? reason : new Error(String(reason)))
      },
    })
  })
}

/** Returns a promise that is rejected: `count` items wait already, so that no more may. */
export function refuse(count: number): Promise<never> {
  return Promise.reject(new DatabaseBusyError(`${count} wait for the database already`, { isBegun: false }))
}
