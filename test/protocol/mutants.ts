import { readFileSync } from 'node:fs'
import { loadSql } from '../../src/deliveries/protocol/load-sql.ts'
import { replaceOnce } from '../helpers/mutate.ts'

/** A change to the text of one statement that breaks it. */
export type Mutant = {
  /** A statement of the protocol, or a file of the product. */
  file: string
  name: string
  /** Occurs once in the file. */
  text: string
  by: string
  /** The configuration that finds it. */
  foundIn: string
}

const mutant = (file: string, name: string, foundIn: string, text: string, by: string): Mutant => ({
  file,
  name,
  text,
  by,
  foundIn,
})

const TAKES =
  'AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) IS NULL'
const BEGUN = 'begun by the commit'
/** Changes a statement so that an erasure makes no difference to it. */
const [ERASED, NOT_ERASED] = ['e.key, d.is_erased)', 'e.key, false)']

export const MUTANTS: readonly Mutant[] = [
  mutant(
    'commit-events',
    'commits for webhooks that take nothing',
    BEGUN,
    TAKES.replace('e.key, d.is_erased', 'key'),
    '',
  ),
  mutant(
    'commit-events',
    'gives no lease',
    BEGUN,
    'WHEN begins THEN delivery_now() + :leaseMs',
    'WHEN begins THEN delivery_now() - :leaseMs',
  ),
  mutant(
    'claim',
    'claims what is not due',
    'begun by a workflow',
    "AND d.next_attempt_at <= delivery_now() + interval '3 ms'",
    '',
  ),
  mutant('claim', 'claims what another run has', BEGUN, 'AND d.lease_until < delivery_now()', ''),
  mutant('claim', 'claims for webhooks that are off', BEGUN, TAKES, ''),
  mutant('claim', 'claims what is erased', 'erased', ERASED, NOT_ERASED),
  mutant('record-failure', 'goes on with what is erased', 'erased', ERASED, NOT_ERASED),
  mutant(
    'record-failure',
    'closes no incident',
    'erased in the last attempts',
    "FROM 'payload_erased'",
    "FROM ''",
  ),
  mutant('stop', 'closes no incident', 'erased', "(stop_reason = 'payload_erased')", '(false)'),
  mutant('request-retry', 'retries what is erased', 'erased with a workflow', ERASED, NOT_ERASED),
  mutant('resume', 'resumes what is erased', 'erased', ERASED, NOT_ERASED),
  mutant('erase', 'marks nothing', 'erased', 'is_erased = true', 'is_erased = d.is_erased'),
  mutant('claim', 'does not count runs', 'killed', 'runs = d.runs + 1', 'runs = greatest(d.runs, 1)'),
  mutant('claim', 'claims another attempt', 'killed with a workflow', 'AND d.attempts = g.number - 1', ''),
  mutant(
    'claim',
    'keeps the request of a retry',
    BEGUN,
    'retry_requested = false',
    'retry_requested = d.retry_requested',
  ),
  mutant(
    'claim',
    'forgets to be swept',
    BEGUN,
    'sweep_at = delivery_now()',
    "sweep_at = delivery_now() + interval '1 day'",
  ),
  mutant('release', 'releases what another run has', 'paused', 'AND d.owner = g.owner', ''),
  mutant(
    'release',
    'does not count a POST that was cut off',
    'paused',
    'CASE WHEN g.has_posted THEN 0 ELSE 1 END',
    'CASE WHEN g.has_posted THEN 1 ELSE 1 END',
  ),
  mutant(
    'release',
    'counts a POST that was not sent',
    BEGUN,
    'CASE WHEN g.has_posted THEN 0 ELSE 1 END',
    'CASE WHEN g.has_posted THEN 0 ELSE 0 END',
  ),
  mutant('renew-lease', 'renews what another run has', 'slow to record', 'AND d.owner = g.owner', ''),
  mutant(
    'record-first-success',
    'leaves an incident open',
    'an incident of two',
    'OR has_unresolved(d.webhook_id)',
    'OR true',
  ),
  mutant('record-first-success', 'records over a recorded attempt', 'paused', 'AND d.attempts = 0', ''),
  mutant(
    'record-success',
    'confirms only what is in progress',
    'paused',
    "AND d.state <> 'completed'",
    "AND d.state = 'in_progress'",
  ),
  mutant(
    'record-success',
    'owes no signal to a workflow that waits',
    'paused in the last attempts',
    "WHEN d.state <> 'in_progress' THEN delivery_now() END",
    'END',
  ),
  mutant(
    'record-success',
    'counts attempts anew',
    'paused in the last attempts',
    'attempts = greatest(d.attempts, g.number)',
    'attempts = g.number',
  ),
  mutant('record-failure', 'records for any run', 'paused', 'AND d.owner = f.owner', ''),
  mutant(
    'record-failure',
    'records over what is not in progress',
    'paused',
    "AND d.state = 'in_progress' AND d.owner = f.owner",
    "AND d.state <> 'completed' AND (d.owner = f.owner OR d.owner IS NULL)",
  ),
  mutant(
    'record-failure',
    'goes by no webhook',
    BEGUN,
    'ELSE stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) END AS reason',
    'END AS reason',
  ),
  mutant(
    'record-failure',
    'forgets a requested retry',
    'the last attempts',
    "WHEN d.retry_requested THEN 'waiting'",
    '',
  ),
  mutant(
    'record-failure',
    'lets a requested retry wait',
    BEGUN,
    'CASE WHEN d.retry_requested THEN delivery_now()',
    'CASE WHEN false THEN delivery_now()',
  ),
  mutant('record-failure', 'opens an incident for what is stopped', BEGUN, 'done.reason IS NULL AND (', '('),
  mutant(
    'record-failure',
    'is swept much later',
    BEGUN,
    'THEN s.due + CASE',
    "THEN s.due + interval '1 day' + CASE",
  ),
  mutant(
    'record-failure',
    'owes no workflow',
    BEGUN,
    'WHEN d.workflow_started_at IS NULL THEN delivery_now() + :followAfterMs::float8',
    'WHEN d.workflow_started_at IS NULL THEN NULL::timestamptz + :followAfterMs::float8',
  ),
  mutant('request-retry', 'retries what its webhook does not take', BEGUN, TAKES, ''),
  mutant('request-retry', 'leaves the signal to chance', BEGUN, "interval '5 seconds'", "interval '1 day'"),
  mutant(
    'request-retry',
    'ends an attempt under way',
    BEGUN,
    "d.state IN ('waiting', 'failed', 'stopped') AS is_at_rest",
    "d.state <> 'pending' AS is_at_rest",
  ),
  mutant('stop', 'stops an attempt under way', BEGUN, 'AND d.lease_until < delivery_now()', ''),
  mutant(
    'stop',
    'leaves what is pending',
    BEGUN,
    "d.state IN ('pending', 'waiting')",
    "d.state IN ('waiting')",
  ),
  mutant('stop', 'leaves what waits', BEGUN, "d.state IN ('pending', 'waiting')", "d.state IN ('pending')"),
  mutant(
    'stop',
    'leaves what was lost',
    'killed',
    "OR d.state = 'in_progress' AND d.lease_until < delivery_now()",
    '',
  ),
  mutant(
    'stop',
    'owes nothing',
    'the last attempts',
    'sweep_at = CASE WHEN d.workflow_started_at IS NOT NULL OR d.attempts > 0 THEN delivery_now() END',
    'sweep_at = NULL',
  ),
  mutant(
    'stop',
    'stops what its webhook takes',
    'two deliveries',
    'WHERE stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) IS NOT NULL',
    '',
  ),
  mutant('resume', 'resumes what had attempts', BEGUN, 'AND d.attempts = 0', ''),
  mutant('resume', 'resumes what its webhook does not take', 'pulled, switched and narrowed', TAKES, ''),
  mutant('resume', 'resumes nothing', BEGUN, "AND d.state = 'stopped'", 'AND false'),
  mutant(
    'discard',
    'discards what was never attempted',
    BEGUN,
    "AND d.state IN ('waiting', 'failed')",
    "AND d.state IN ('pending', 'waiting', 'failed')",
  ),
  mutant(
    'discard',
    'owes no signal',
    'the last attempts',
    "sweep_at = CASE WHEN d.state = 'waiting' THEN delivery_now() END",
    'sweep_at = NULL',
  ),
  mutant(
    'mark-workflow-started',
    'is swept much later',
    BEGUN,
    "WHEN 'waiting' THEN greatest",
    "WHEN 'waiting' THEN interval '1 day' + greatest",
  ),
  mutant(
    'sweep-later',
    'takes what went on',
    'the last attempts',
    "AND date_trunc('milliseconds', d.sweep_at) = g.seen_at",
    '',
  ),
  mutant(
    'sweep-everything',
    'is swept much later',
    'workflows lost',
    'SET sweep_at = delivery_now()',
    "SET sweep_at = delivery_now() + interval '1 day'",
  ),
  mutant(
    'src/db/queries/webhooks.ts',
    'shares the lock of a webhook',
    BEGUN,
    'SELECT pg_try_advisory_xact_lock(',
    'SELECT pg_try_advisory_xact_lock_shared(',
  ),
]

/** True for a mutant of a file of the product, which is no statement of the protocol. */
export const isOfFile = ({ file }: Mutant): boolean => file.endsWith('.ts')

/** Throws where its text does not occur exactly once in its statement, or file. */
export function checkMutant(mutant: Mutant): void {
  const { file, name, text, by } = mutant
  const original = isOfFile(mutant)
    ? readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    : loadSql(file).text
  replaceOnce(original, text, by, `${file}, for the mutant "${name}",`)
}
