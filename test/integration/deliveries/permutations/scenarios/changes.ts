import { due, failed, leased, lost, pending, stopped, waiting, type Given } from '../rows.ts'
import type { Scenario } from '../scenario.ts'
import { commit, mark, sweep } from '../sessions/processes.ts'
import { claim, recordFailure, recordSuccess, release, renew, stop } from '../sessions/runs.ts'
import { change, remove, retry } from '../sessions/users.ts'

const second = { number: 2 }
const last = { number: 10 }
const other: Given = { ...pending, isOfOther: true }

/** What switching a webhook off and on, and changing its subscription, do to deliveries that others have at hand. */
export const CHANGES: readonly Scenario[] = [
  {
    title: 'a switch-off stops every delivery whose row others have locked meanwhile',
    rows: {
      deliveries: [
        { ...pending, sweepInMs: 10 },
        { ...pending, sweepInMs: 20 },
      ],
    },
    sessions: { mark: mark(1, 2), user: change('off') },
  },
  {
    title: 'a switch-off stops every retry that the sweeper has just taken',
    rows: { deliveries: [waiting, { ...waiting, sweepInMs: 80_000 }] },
    sessions: { sweep: sweep([2], { seenInMs: 80_000, inMs: 90_000 }), user: change('off') },
  },
  {
    title: 'a claim comes before a switch-off, or is refused',
    rows: { deliveries: [pending] },
    sessions: { claim: claim('B', [1]), user: change('off') },
  },
  {
    title: 'a claim of a lost run comes before a switch-off, or is refused',
    rows: { deliveries: [lost] },
    sessions: { claim: claim('B', [1]), user: change('off') },
  },
  {
    title: 'a claim of a retry comes before a key is removed, or is refused',
    rows: { deliveries: [due] },
    sessions: { claim: claim('B', [1], second), user: change('narrow') },
  },
  {
    title: 'a claim comes before the deletion of the webhook, or is refused',
    rows: { deliveries: [due] },
    sessions: { claim: claim('B', [1], second), user: remove },
  },
  {
    title: 'a claim comes before a switch-off, between it and a switch-on, or after both',
    rows: { deliveries: [pending] },
    sessions: { claim: claim('B', [1]), user: change('off', 'on') },
  },
  {
    title: 'a claim of a retry comes before a key is removed, or is refused until it is added',
    rows: { deliveries: [due] },
    sessions: { claim: claim('B', [1], second), user: change('narrow', 'widen') },
  },
  {
    title: 'a batch of claims passes over a locked row while the webhook of another is switched off and on',
    rows: { deliveries: [other, pending] },
    sessions: { third: mark(1), claim: claim('B', [1, 2]), user: change('off', 'on') },
    first: ['third', 'claim'],
  },
  {
    title: 'a batch of claims passes over a locked row while the webhook of another is switched off',
    rows: { deliveries: [other, pending] },
    sessions: { third: mark(1), claim: claim('B', [1, 2]), user: change('off') },
    first: ['third', 'claim'],
  },
  {
    title: 'a batch of claims and a switch-off of its rows never deadlock',
    rows: {
      deliveries: [
        { ...pending, sweepInMs: 30 },
        { ...pending, sweepInMs: 20 },
        { ...pending, sweepInMs: 10 },
      ],
    },
    sessions: { third: mark(2), claim: claim('B', [1, 2, 3]), user: change('off') },
    first: ['third'],
    isRowByRow: true,
  },
  {
    title: 'a refused run stops no delivery of a webhook that is switched on meanwhile',
    rows: { deliveries: [pending, { ...stopped }], webhook: 'disabled' },
    sessions: { run: stop, user: change('on') },
  },
  ...[0, 1].map((room) => ({
    title: `an event that is accepted during a switch-off is delivered or stopped (${room} begun at once)`,
    rows: { deliveries: [] },
    sessions: { process: commit({ room }), user: change('off') },
    // The claim is refused, and its run stops it.
    afterwards: stop,
  })),
  {
    title: 'an event that is accepted during a switch-on has a delivery, or came before it',
    rows: { deliveries: [stopped], webhook: 'disabled' },
    sessions: { process: commit(), user: change('on') },
  },
  {
    title: 'an event that is accepted during a switch-off and a switch-on is not left stopped',
    rows: { deliveries: [] },
    sessions: { process: commit({ room: 1 }), user: change('off', 'on') },
  },
  {
    title: 'an event that is accepted during the deletion of its webhook is stopped',
    rows: { deliveries: [] },
    sessions: { process: commit(), user: remove },
    // The claim is refused, and its run stops it.
    afterwards: stop,
  },
  {
    title: 'a run returns its row before a switch-off, or after it',
    rows: { deliveries: [leased] },
    sessions: { release: release('A', [1]), user: change('off') },
    // The claim is refused, and its run stops it.
    afterwards: stop,
  },
  {
    title: 'a run returns its row while its webhook is switched off and on',
    rows: { deliveries: [leased] },
    sessions: { release: release('A', [1]), user: change('off', 'on') },
  },
  {
    title: 'a lost run whose lease is renewed during a switch-off is stopped, or goes on',
    rows: { deliveries: [lost] },
    sessions: { renew: renew('A', 1), user: change('off') },
  },
  {
    title: 'the start of a workflow is noted while its delivery is stopped',
    rows: { deliveries: [pending] },
    sessions: { mark: mark(1), user: change('off') },
  },
  {
    title: 'the start of a workflow is noted while its delivery is stopped and resumed',
    rows: { deliveries: [pending] },
    sessions: { mark: mark(1), user: change('off', 'on') },
  },
  {
    title: 'the sweeper settles a stopped delivery, or a switch-on resumes it',
    rows: { deliveries: [{ ...stopped, hasWorkflow: true, sweepInMs: -500 }], webhook: 'disabled' },
    sessions: { sweep: sweep([1], { seenInMs: -500, inMs: null }), user: change('on') },
  },
  ...[
    { name: 'first attempt', rows: { deliveries: [leased] }, options: {} },
    { name: 'retry', rows: { deliveries: [{ ...leased, attempts: 1 }] }, options: second },
    { name: 'last attempt', rows: { deliveries: [{ ...leased, attempts: 9 }] }, options: last },
    {
      name: 'attempt with a requested retry',
      rows: { deliveries: [{ ...leased, isRequested: true }] },
      options: {},
    },
  ].flatMap(({ name, rows, options }): Scenario[] => [
    {
      title: `a failed ${name} goes by the webhook as it is: switched off`,
      rows,
      sessions: { run: recordFailure('A', 1, options), user: change('off') },
    },
    {
      title: `a failed ${name} goes by the webhook as it is: switched off and on`,
      rows,
      sessions: { run: recordFailure('A', 1, options), user: change('off', 'on') },
    },
  ]),
  {
    title: 'a failed attempt goes by the webhook as it is: without its key',
    rows: { deliveries: [leased, waiting] },
    sessions: { run: recordFailure('A', 1), user: change('narrow') },
  },
  {
    title: 'a failed attempt opens no incident of a webhook that is being deleted',
    rows: { deliveries: [leased] },
    sessions: { run: recordFailure('A', 1), user: remove },
  },
  {
    title: 'a first success counts, whether it comes before a switch-off or after it',
    rows: { deliveries: [lost, waiting] },
    sessions: { run: recordSuccess('A', 1), user: change('off') },
  },
  {
    title: 'a first success of a delivery that is being resumed counts',
    rows: { deliveries: [stopped], webhook: 'disabled' },
    sessions: { run: recordSuccess('A', 1, { followAfterMs: 0 }), user: change('on') },
  },
  {
    title: 'a late success of a retry counts, whether its delivery is stopped or not',
    rows: { deliveries: [waiting] },
    sessions: { run: recordSuccess('A', 1), user: change('off') },
  },
  ...Object.entries({ waiting, failed, stopped: { ...stopped, attempts: 2 } }).map(([name, row]) => ({
    title: `a retry of a ${name} delivery is requested before a switch-off, or refused`,
    rows: { deliveries: [row], hasIncident: true },
    sessions: { user: retry(1), other: change('off') },
  })),
]
