import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'

const POLL_MS = 100
/** Without any progress. */
const SLOW_GROUP_MS = 30_000

/** A moment: the id that a delivery made then would have. Ids grow with time. */
export type Mark = string

const BEGINNING: Mark = '00000000-0000-0000-0000-000000000000'

export async function setMark(dataSource: DataSource): Promise<Mark> {
  const [now] = await dataSource.query<[{ id: string }]>('SELECT uuidv7() AS id')
  return now.id
}

/** Waits until every delivery since the mark is recorded as completed. Answers in words what is not. */
export function statesSettled(dataSource: DataSource, mark = BEGINNING): Promise<string[]> {
  return untilNone(dataSource, `state <> 'completed'`, 'not completed', mark)
}

/** Waits until every delivery since the mark has a workflow. Answers in words what has none. */
export function workflowsFollowed(dataSource: DataSource, mark = BEGINNING): Promise<string[]> {
  return untilNone(dataSource, 'workflow_started_at IS NULL', 'without a workflow', mark)
}

async function untilNone(
  dataSource: DataSource,
  condition: string,
  words: string,
  mark: Mark,
): Promise<string[]> {
  let last = { left: Infinity, atMs: Date.now() }
  for (;;) {
    const [found] = await dataSource.query<[{ left: number }]>(
      `SELECT count(*)::int AS left FROM delivery WHERE ${condition} AND id > $1::uuid`,
      [mark],
    )
    const { left } = found
    if (left === 0) return []
    if (left < last.left) last = { left, atMs: Date.now() }
    if (Date.now() - last.atMs > SLOW_GROUP_MS) return [`${left} deliveries ${words}`]
    await delay(POLL_MS)
  }
}
