import pLimit from 'p-limit'
import { isEngineAway } from '../../temporal/engine-away.ts'

/** What became of the rows of one round of calls to Temporal, in the order of the rows. */
export type CallResults<Row, Answer> = { answered: { row: Row; answer: Answer }[]; left: Row[] }

/**
 * Calls Temporal for each row, `concurrency` at once. Nothing is called any more once `timeoutMs` are over, or once a
 * call shows that Temporal is away: what was not called, and what failed, is `left`. `onRefused` hears of each failure.
 */
export async function callForEach<Row, Answer>(
  rows: readonly Row[],
  call: (row: Row) => Promise<Answer>,
  options: { concurrency: number; timeoutMs: number; onRefused: (row: Row, error: unknown) => void },
): Promise<CallResults<Row, Answer>> {
  const deadlineMs = performance.now() + options.timeoutMs
  let isAway = false
  const results: CallResults<Row, Answer> = { answered: [], left: [] }
  await pLimit(options.concurrency).map(rows, async (row) => {
    if (isAway || performance.now() > deadlineMs) {
      results.left.push(row)
      return
    }
    try {
      results.answered.push({ row, answer: await call(row) })
    } catch (error) {
      isAway ||= isEngineAway(error)
      results.left.push(row)
      options.onRefused(row, error)
    }
  })
  return results
}
