import { due, leased, lost, pending, waiting, type Given } from '../rows.ts'
import type { Scenario } from '../scenario.ts'
import { mark, sweep, sweepEverything } from '../sessions/processes.ts'
import { claim, recordSuccess, release, renew } from '../sessions/runs.ts'
import { change } from '../sessions/users.ts'

const second = { number: 2 }
/** Due for so long; the later, the sooner swept. */
const late = (dueInMs: number): Given => ({ ...waiting, dueInMs, sweepInMs: 20_000 + dueInMs })

/** Who may POST, and who has the row. */
export const CLAIMS: readonly Scenario[] = [
  {
    title: 'of two claims of a pending delivery one is granted',
    rows: { deliveries: [pending] },
    sessions: { one: claim('B', [1]), other: claim('C', [1]) },
  },
  {
    title: 'of two claims of a lost run one is granted',
    rows: { deliveries: [lost] },
    sessions: { one: claim('B', [1]), other: claim('C', [1]) },
  },
  {
    title: 'of two claims of a retry that is due one is granted',
    rows: { deliveries: [due] },
    sessions: { one: claim('B', [1], second), other: claim('C', [1], second) },
  },
  {
    title: 'two batches of claims with rows in common get each row once',
    rows: { deliveries: [pending, pending, lost] },
    sessions: { one: claim('B', [1, 2]), other: claim('C', [3, 2]) },
  },
  {
    title: 'two batches of the same rows in opposite order never deadlock',
    rows: { deliveries: [pending, pending, pending] },
    // A row that a third session has: without it a statement takes all of its rows at once.
    sessions: { third: mark(2), one: claim('B', [1, 2, 3]), other: claim('C', [3, 2, 1]) },
    isRowByRow: true,
  },
  {
    title: 'a batch of claims and lost runs that end leave consistent rows, also after a deadlock',
    rows: { deliveries: [lost, lost, lost] },
    sessions: { third: mark(2), claim: claim('B', [1, 2, 3]), release: release('A', [3, 2, 1]) },
    first: ['third'],
    mayDeadlock: true,
    isRowByRow: true,
  },
  {
    title: 'a claim is granted only after the run that has the row has returned it',
    rows: { deliveries: [leased] },
    sessions: { release: release('A', [1]), claim: claim('B', [1]) },
  },
  {
    title: 'a lost run returns no row that another run has claimed',
    rows: { deliveries: [lost] },
    sessions: { release: release('A', [1]), claim: claim('B', [1]) },
  },
  {
    title: 'a run whose POST was cut off leaves its row to the next one',
    rows: { deliveries: [{ ...lost, attempts: 1 }] },
    sessions: { release: release('A', [1], { hasPosted: true }), claim: claim('B', [1], second) },
  },
  {
    title: 'a lease that is over is renewed, or the row is claimed by another run',
    rows: { deliveries: [lost] },
    sessions: { renew: renew('A', 1), claim: claim('B', [1]) },
  },
  {
    title: 'renewing a lease does not wait for the record of the success',
    rows: { deliveries: [leased] },
    sessions: { renew: renew('A', 1), record: recordSuccess('A', 1) },
  },
  {
    title: 'the sweeper passes over a row that is being claimed',
    rows: { deliveries: [pending] },
    sessions: { sweep: sweep([1], { seenInMs: 0, inMs: 15_000 }), claim: claim('B', [1]) },
  },
  {
    title: 'of two sweepers that read the same rows one takes each',
    rows: { deliveries: [pending, pending] },
    sessions: {
      one: sweep([1, 2], { seenInMs: 0, inMs: 15_000 }),
      other: sweep([2, 1], { seenInMs: 0, inMs: 20_000 }),
    },
  },
  {
    title: 'the start of a workflow is noted while another process claims the delivery',
    rows: { deliveries: [pending] },
    sessions: { mark: mark(1), claim: claim('B', [1]) },
  },
  {
    title: 'the start of a workflow is noted while the workflow claims its delivery',
    rows: { deliveries: [pending] },
    sessions: { mark: mark(1), claim: claim('B', [1], { isWorkflow: true }) },
  },
  {
    title: 'a sweep of everything changes no attempt under way',
    rows: { deliveries: [due, { ...waiting, dueInMs: -5_000 }] },
    sessions: { sweep: sweepEverything, claim: claim('B', [1, 2], second) },
  },
  {
    title: 'a batch of claims and a sweep of everything never deadlock',
    rows: { deliveries: [-1_000, -2_000, -3_000].map((dueInMs) => late(dueInMs)) },
    sessions: {
      third: sweep([2], { seenInMs: 18_000, inMs: 20_000 }),
      claim: claim('B', [1, 2, 3], second),
      sweep: sweepEverything,
    },
    first: ['third'],
    isRowByRow: true,
  },
  {
    title: 'a switch-off and a sweep of everything never deadlock',
    rows: { deliveries: [-1_000, -2_000, -3_000].map((dueInMs) => late(dueInMs)) },
    sessions: {
      third: sweep([2], { seenInMs: 18_000, inMs: 20_000 }),
      user: change('off'),
      sweep: sweepEverything,
    },
    first: ['third'],
  },
  {
    title: 'the start of a workflow is noted while a run returns its row',
    rows: { deliveries: [leased] },
    sessions: { mark: mark(1), release: release('A', [1]) },
  },
]
