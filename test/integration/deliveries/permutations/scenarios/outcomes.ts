import { due, failed, leased, lost, pending, waiting, type Given } from '../rows.ts'
import type { Scenario } from '../scenario.ts'
import { erase, mark, purge, sweep } from '../sessions/processes.ts'
import { claim, recordFailure, recordSuccess, renew } from '../sessions/runs.ts'
import { discard, retry } from '../sessions/users.ts'

const second = { number: 2 }
/** Run B has taken over from run A, whose process was paused. */
const taken: Given = { ...leased, owner: 'B' }
const old: Given = { ...failed, attempts: 2, isOld: true }

/** What comes of attempts that end at the same time, and of what users and others do meanwhile. */
export const OUTCOMES: readonly Scenario[] = [
  {
    title: 'a failure of the run that lost its row is not recorded while another run claims it',
    rows: { deliveries: [lost] },
    sessions: { run: recordFailure('A', 1), claim: claim('B', [1]) },
  },
  {
    title: 'a failure with a requested retry is recorded before a claim of the same attempt, or not at all',
    rows: { deliveries: [{ ...lost, isRequested: true }] },
    sessions: { run: recordFailure('A', 1), claim: claim('B', [1]) },
  },
  {
    title: 'a late first success and the failure of the run that took over leave it completed',
    rows: { deliveries: [taken] },
    sessions: { late: recordSuccess('A', 1), run: recordFailure('B', 1) },
  },
  {
    title: 'a late success of a retry and the failure of the run that took over leave it completed',
    rows: { deliveries: [{ ...taken, attempts: 1 }] },
    sessions: { late: recordSuccess('A', 1, second), run: recordFailure('B', 1, second) },
  },
  {
    title: 'a success is recorded once when two runs have one',
    rows: { deliveries: [taken] },
    sessions: { late: recordSuccess('A', 1), run: recordSuccess('B', 1, { followAfterMs: 0 }) },
  },
  {
    title: 'a success is recorded once when two runs have one, under different numbers',
    rows: { deliveries: [{ ...taken, attempts: 1 }] },
    sessions: { late: recordSuccess('A', 1), run: recordSuccess('B', 1, second) },
  },
  {
    title: 'a first success and the failure of another delivery leave an incident open',
    rows: { deliveries: [leased, { ...leased, owner: 'B' }] },
    sessions: { first: recordSuccess('A', 1), run: recordFailure('B', 2) },
  },
  {
    title: 'a failure is never without an incident while a success of another delivery closes it',
    rows: {
      deliveries: [
        { ...leased, attempts: 1 },
        { ...leased, owner: 'B' },
      ],
    },
    sessions: { success: recordSuccess('A', 1, second), run: recordFailure('B', 2) },
  },
  {
    title: 'a first success and a success that resolves the incident close it',
    rows: { deliveries: [leased, { ...leased, owner: 'B', attempts: 1 }] },
    sessions: { first: recordSuccess('A', 1), run: recordSuccess('B', 2, second) },
  },
  {
    title: 'a first success and a discard that resolves the incident close it',
    rows: { deliveries: [leased, waiting] },
    sessions: { first: recordSuccess('A', 1), user: discard(2) },
  },
  {
    title: 'a failure is never without an incident while a discard of another delivery closes it',
    rows: { deliveries: [leased, waiting] },
    sessions: { run: recordFailure('A', 1), user: discard(2) },
  },
  {
    title: 'a late success counts, whether its delivery is discarded or not',
    rows: { deliveries: [waiting] },
    sessions: { late: recordSuccess('A', 1), user: discard(1) },
  },
  {
    title: 'a discard comes before the claim of a retry, or is refused',
    rows: { deliveries: [due] },
    sessions: { claim: claim('B', [1], second), user: discard(1) },
  },
  {
    title: 'a late success and the claim of a retry leave it completed',
    rows: { deliveries: [due] },
    sessions: { late: recordSuccess('A', 1), claim: claim('B', [1], second) },
  },
  ...Object.entries({ pending, due, waiting, lost: { ...lost, attempts: 1 } }).map(([name, row]) => ({
    title: `a retry that is requested while a ${name} delivery is claimed acts once`,
    rows: { deliveries: [row] },
    sessions: { claim: claim('B', [1], { number: (row.attempts ?? 0) + 1 }), user: retry(1) },
  })),
  {
    title: 'a retry that is requested while an attempt fails follows it',
    rows: { deliveries: [leased] },
    sessions: { run: recordFailure('A', 1), user: retry(1) },
  },
  {
    title: 'a retry that is requested while the last attempt fails follows it',
    rows: { deliveries: [{ ...leased, attempts: 9 }] },
    sessions: { run: recordFailure('A', 1, { number: 10 }), user: retry(1) },
  },
  {
    title: 'a retry that is requested while an attempt succeeds is refused, or has no effect',
    rows: { deliveries: [leased] },
    sessions: { run: recordSuccess('A', 1), user: retry(1) },
  },
  {
    title: 'a retry and a discard of a failed delivery exclude each other',
    rows: { deliveries: [failed] },
    sessions: { user: retry(1), other: discard(1) },
  },
  {
    title: 'renewing a lease does not wait for the record of the failure',
    rows: { deliveries: [lost] },
    sessions: { renew: renew('A', 1), run: recordFailure('A', 1) },
  },
  {
    title: 'the sweeper does not wait for the record of a failure',
    rows: { deliveries: [lost] },
    sessions: { sweep: sweep([1], { seenInMs: -1, inMs: 15_000 }), run: recordFailure('A', 1) },
  },
  {
    title: 'the sweeper settles a failed delivery, or a user retries it',
    rows: { deliveries: [{ ...failed, sweepInMs: -500 }] },
    sessions: { sweep: sweep([1], { seenInMs: -500, inMs: null }), user: retry(1) },
  },
  {
    title: 'the start of a workflow is noted while the first attempt succeeds',
    rows: { deliveries: [pending] },
    sessions: { mark: mark(1), run: recordSuccess('A', 1) },
  },
  {
    title: 'the start of a workflow is noted while the first attempt fails',
    rows: { deliveries: [leased] },
    sessions: { mark: mark(1), run: recordFailure('A', 1, { followAfterMs: 0 }) },
  },
  {
    title: 'a purge and a late success never leave an attempt without its delivery',
    rows: { deliveries: [old] },
    sessions: { purge: purge('failed'), late: recordSuccess('A', 1, second) },
  },
  {
    title: 'a purge passes over what a user has retried',
    rows: { deliveries: [old, { ...old, sweepInMs: 0 }] },
    sessions: { purge: purge('failed'), user: retry(1) },
  },
  ...Object.entries({
    'a failure': recordFailure('A', 1),
    'a first success': recordSuccess('A', 1),
    'a renewal': renew('A', 1),
  }).map(([name, other]) => ({
    title: `an erasure takes the delivery before ${name}, or after it`,
    rows: { deliveries: [lost], webhook: 'deleted' as const },
    sessions: { erase, other },
    // A step is repeated until nothing is left.
    afterwards: erase,
  })),
]
