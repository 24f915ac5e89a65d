import type { RecordedAttempt } from '../../../src/domain/workflow-inputs.ts'
import type { Signal } from './model-events.ts'
import { requestRetry, rowOf, type ModelRow } from './model-row.ts'
import type { Scene } from './model-run.ts'

const ids = { organisationId: 'org_1', webhookId: 'webhook', deliveryId: 'delivery' }

/** How far in the future a retry waits that is handed to a workflow. */
const WAIT_MS = 300_000

/** Where deliveries begin that make their first attempt themselves, or go on after one that a process made. */
export const SCENES: readonly Scene[] = [
  {
    name: 'a new delivery',
    begin: () => ({ input: { ...ids, next: { number: 1, dueAtMs: null } }, row: rowOf({}) }),
  },
  {
    name: 'one whose first attempt was made without a workflow',
    begin(nowMs, aheadMs) {
      const dueAtMs = nowMs + aheadMs + WAIT_MS
      const row = rowOf({ state: 'waiting', attempts: 1, dueAtMs })
      return { input: { ...ids, next: { number: 2, dueAtMs, waitMs: WAIT_MS } }, row }
    },
  },
  {
    name: 'one that is retried',
    signal: 'retry',
    begin: (nowMs, aheadMs) => retried(rowOf({ state: 'failed', attempts: 3 }), nowMs + aheadMs),
  },
  {
    name: 'one that is started again although it is completed',
    begin: () => ({
      input: { ...ids, next: { number: 1, dueAtMs: null } },
      row: rowOf({ state: 'completed', attempts: 1 }),
    }),
  },
]

/** Workflows that only follow, and what reaches them before their first task. */
export const FOLLOWING_SCENES: readonly Scene[] = [
  following({ state: 'completed', attempts: 1 }),
  following({ state: 'completed', attempts: 1 }, 'stop without a reason'),
  following({ state: 'stopped', attempts: 1 }),
  following({ state: 'stopped', attempts: 1 }, 'retry'),
  following({ state: 'stopped', attempts: 1 }, 'bare retry'),
  following({ state: 'failed', attempts: 3 }, 'retry'),
  following({ state: 'failed', attempts: 3 }, 'stop'),
]

function following(recorded: RecordedAttempt, signal?: Signal): Scene {
  const { state, attempts } = recorded
  return {
    name: `one that only follows, ${state}${signal === undefined ? '' : `, signalled: ${signal}`}`,
    ...(signal && { signal }),
    begin: () => ({
      input: { ...ids, next: { number: attempts + 1, dueAtMs: null }, recorded },
      row: rowOf({ state, attempts }),
    }),
  }
}

function retried(row: ModelRow, databaseMs: number): ReturnType<Scene['begin']> {
  requestRetry(row, databaseMs)
  return { input: { ...ids, next: { number: row.attempts + 1, dueAtMs: null } }, row }
}
