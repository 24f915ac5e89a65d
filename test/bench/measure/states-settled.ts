import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'

const POLL_MS = 100
/** Without any progress. */
const PATIENCE_MS = 30_000

/** Waits until every delivery is recorded as completed. Answers in words what is not. */
export function statesSettled(dataSource: DataSource): Promise<string[]> {
  return untilNone(dataSource, `state <> 'completed'`, 'not completed')
}

/** Waits until every delivery has a workflow. Answers in words what has none. */
export function workflowsFollowed(dataSource: DataSource): Promise<string[]> {
  return untilNone(dataSource, 'started_at IS NULL', 'without a workflow')
}

async function untilNone(dataSource: DataSource, condition: string, words: string): Promise<string[]> {
  let last = { left: Infinity, atMs: Date.now() }
  for (;;) {
    const [found] = await dataSource.query<[{ left: number }]>(
      `SELECT count(*)::int AS left FROM delivery WHERE ${condition}`,
    )
    const { left } = found
    if (left === 0) return []
    if (left < last.left) last = { left, atMs: Date.now() }
    if (Date.now() - last.atMs > PATIENCE_MS) return [`${left} deliveries ${words}`]
    await delay(POLL_MS)
  }
}
