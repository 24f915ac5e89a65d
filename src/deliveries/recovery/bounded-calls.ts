import pLimit from 'p-limit'
import { isTemporalUnavailable } from '../../temporal/calls.ts'

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
