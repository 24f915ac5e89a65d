import type { Backlog } from '../../../src/db/queries/backlog.ts'

/** What is counted in an empty database. */
export const EMPTY_BACKLOG: Backlog = {
  pending: 0,
  inProgress: 0,
  waiting: 0,
  failed: 0,
  oldestPendingAge: { busy: 0, idle: 0 },
  overdue: { busy: 0, idle: 0 },
  paused: 0,
  owedWorkflows: 0,
  oldestOwedAge: 0,
  openIncidents: 0,
}
