import { randomUUID } from 'node:crypto'
import { sql, type Db } from '../../../src/db/connection/db.ts'
import type { StopReason } from '../../../src/domain/delivery-state.ts'
import type { DataSource } from 'typeorm'

/**
 * A state of a delivery, with what of it matters to a test. `workflow`: whether its workflow has started, unchanged if not
 * given. `sweepInMs`: when the sweeper reads it; null on a final row that owes its workflow nothing.
 */
export type RowState = { workflow?: boolean; sweepInMs?: number | null } & (
  | { state: 'pending' }
  | { state: 'in_progress'; owner?: string; runs?: number; leaseMs?: number; attempts?: number }
  | { state: 'waiting'; attempts?: number; dueInMs?: number }
  | { state: 'completed' | 'failed'; attempts?: number }
  | { state: 'stopped'; attempts?: number; reason?: StopReason }
)

type Columns = {
  attempts: number
  runs: number
  owner: string | null
  leaseMs: number | null
  dueInMs: number | null
  sweepInMs: number | null
  reason: StopReason | null
}

const NOTHING = { runs: 0, owner: null, leaseMs: null, dueInMs: null, sweepInMs: null, reason: null }

/** The lease and the wait of a row where a test names none: longer than the test takes. */
const LONG_MS = 60_000

/** Puts deliveries into a state, in rows that the database allows. Times count from now, by the database's clock. */
export async function setRow(db: Db, ids: string | readonly string[], to: RowState): Promise<void> {
  const columns = columnsOf(to)
  await sql(
    `UPDATE delivery
        SET state = :state, attempts = :attempts, runs = :runs, owner = :owner, stop_reason = :reason,
            lease_until = delivery_now() + :leaseMs::float8 * interval '1 ms',
            next_attempt_at = delivery_now() + :dueInMs::float8 * interval '1 ms',
            sweep_at = delivery_now() + :sweepInMs::float8 * interval '1 ms',
            completed_at = CASE WHEN :isFinal THEN delivery_now() END,
            workflow_started_at = CASE WHEN :workflow::boolean THEN coalesce(workflow_started_at, delivery_now())
                                       WHEN :workflow::boolean IS NULL THEN workflow_started_at END,
            retry_requested = false, attempt_requested = false, paused_since = NULL
      WHERE id = ANY(:ids::uuid[])`,
    {
      ids: typeof ids === 'string' ? [ids] : ids,
      state: to.state,
      isFinal: to.state === 'completed' || to.state === 'failed' || to.state === 'stopped',
      workflow: to.workflow ?? null,
      ...columns,
      sweepInMs: to.sweepInMs === undefined ? columns.sweepInMs : to.sweepInMs,
    },
  ).rows(db)
}

function columnsOf(to: RowState): Columns {
  switch (to.state) {
    case 'pending':
      return { ...NOTHING, attempts: 0, sweepInMs: LONG_MS }
    case 'in_progress': {
      const { owner = randomUUID(), runs = 1, leaseMs = LONG_MS, attempts = 0 } = to
      return {
        ...NOTHING,
        attempts,
        runs,
        owner,
        leaseMs,
        dueInMs: attempts > 0 ? 0 : null,
        sweepInMs: leaseMs,
      }
    }
    case 'waiting': {
      const { attempts = 1, dueInMs = LONG_MS } = to
      return { ...NOTHING, attempts, dueInMs, sweepInMs: dueInMs + LONG_MS }
    }
    case 'completed':
      return { ...NOTHING, attempts: to.attempts ?? 1 }
    case 'failed':
      return { ...NOTHING, attempts: to.attempts ?? 10 }
    case 'stopped':
      return { ...NOTHING, attempts: to.attempts ?? 0, reason: to.reason ?? 'webhook_disabled' }
  }
}

/** Makes deliveries that wait due now, as if the time until their next attempts were over; leaves others alone. */
export async function makeDue(dataSource: DataSource, ids: readonly string[]): Promise<void> {
  await dataSource.query(
    `UPDATE delivery SET next_attempt_at = delivery_now() WHERE id = ANY($1::uuid[]) AND state = 'waiting'`,
    [ids],
  )
}
