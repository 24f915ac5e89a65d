import type { Mutant } from './mutate.ts'

/** SQL for a column of the row as the snapshot of the statement has it, and not as it is once the row is locked. */
const found = (column: string): string => `(SELECT s.${column} FROM delivery s WHERE s.id = d.id)`

/** Conditions that READ COMMITTED does not recheck on the row that it has waited for. */
const NOT_RECHECKED: readonly Mutant[] = [
  {
    name: 'the owner',
    of: 'release',
    edits: [[`d.state = 'in_progress' AND d.owner`, found('owner')]],
  },
  {
    name: 'whether the delivery has a workflow',
    of: 'release',
    edits: [['d.workflow_started_at', found('workflow_started_at')]],
  },
  {
    name: 'the owner',
    of: 'record-failure',
    edits: [[`d.attempts = f.number - 1 AND d.state = 'in_progress' AND d.owner`, found('owner')]],
  },
  {
    name: 'whether the delivery has a workflow',
    of: 'record-failure',
    edits: [
      [
        'THEN s.due + CASE WHEN d.workflow_started_at',
        `THEN s.due + CASE WHEN ${found('workflow_started_at')}`,
      ],
    ],
  },
  {
    name: 'that no attempt is recorded',
    of: 'record-first-success',
    edits: [['d.attempts = 0', `${found('attempts')} = 0`]],
  },
  {
    name: 'the state',
    of: 'request-retry',
    edits: [
      ['d.state = ANY', `${found('state')} = ANY`],
      [`d.state <> 'completed'`, 'true'],
    ],
  },
  {
    name: 'whether the delivery is at rest',
    of: 'request-retry',
    edits: [[`SELECT d.state IN`, `SELECT ${found('state')} IN`]],
  },
  {
    name: 'the state',
    of: 'stop',
    edits: [[`AND (d.state IN`, `AND d.id IN (SELECT d.id FROM delivery d WHERE d.state IN`]],
  },
  {
    name: 'the lease',
    of: 'stop',
    edits: [['d.lease_until < delivery_now()', `${found('lease_until')} < delivery_now()`]],
  },
  {
    name: 'the state',
    of: 'resume',
    edits: [
      [`d.state = 'stopped' AND`, `${found('state')} = 'stopped' AND`],
      ['AND d.attempts = 0', `AND ${found('attempts')} = 0`],
      ['d.stop_reason IN', `${found('stop_reason')} IN`],
    ],
  },
  {
    name: 'the state',
    of: 'discard',
    edits: [[`AND d.state IN ('waiting', 'failed')`, `AND ${found('state')} IN ('waiting', 'failed')`]],
  },
  {
    name: 'the state',
    of: 'mark-workflow-started',
    edits: [['CASE d.state', `CASE ${found('state')}`]],
  },
]

/** Statements whose transaction does not take the lock of the webhook. */
const UNLOCKED: readonly Mutant[] = [
  { name: 'is sent without the lock of the webhook', of: 'record-failure', isUnlocked: true },
  { name: 'is sent without the lock of the webhook', of: 'record-success', isUnlocked: true },
  { name: 'is sent without the lock of the webhook', of: 'stop', isUnlocked: true },
  { name: 'is sent without the lock of the webhook', of: 'resume', isUnlocked: true },
  { name: 'is sent without the lock of the webhook', of: 'request-retry', isUnlocked: true },
  { name: 'is sent without the lock of the webhook', of: 'discard', isUnlocked: true },
]

/** Statements that lock other rows, or in another order. */
const LOCKING: readonly Mutant[] = [
  { name: 'waits for locked rows', of: 'claim', edits: [['SKIP LOCKED', '']] },
  { name: 'waits for locked rows', of: 'renew-lease', edits: [['SKIP LOCKED', '']] },
  { name: 'waits for locked rows', of: 'sweep-later', edits: [['SKIP LOCKED', '']] },
  {
    name: 'takes rows that have changed since they were read',
    of: 'sweep-later',
    edits: [[`AND date_trunc('milliseconds', d.sweep_at) = g.seen_at`, '']],
    isSerial: true,
  },
  { name: 'locks rows in another order', of: 'stop', waits: 'stop', edits: [['ORDER BY d.id', '']] },
  { name: 'locks rows in another order', of: 'sweep-everything', edits: [['ORDER BY id)', ')']] },
  {
    name: 'joins a UNION that PostgreSQL reads again after a wait',
    of: 'stop',
    edits: [
      ['AS MATERIALIZED', 'AS'],
      ['ORDER BY d.id', ''],
    ],
  },
  {
    name: 'waits for locked rows',
    of: 'delete old deliveries',
    edits: [['FOR UPDATE SKIP LOCKED', '']],
  },
]

/** Protocols that are wrong. */
export const MUTANTS: readonly Mutant[] = [
  // Where the statement never waits, its snapshot has each row as it is.
  ...NOT_RECHECKED.map((mutant) => ({
    ...mutant,
    name: `${mutant.of} does not recheck ${mutant.name} after a wait`,
    waits: mutant.of,
  })),
  ...UNLOCKED.map((mutant) => ({
    ...mutant,
    name: `${mutant.of} ${mutant.name}`,
    waits: 'lock webhook',
  })),
  ...LOCKING.map((mutant) => ({ ...mutant, name: `${mutant.of} ${mutant.name}` })),
]
