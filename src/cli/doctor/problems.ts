/** `error`: something does not work, or will not. `warning`: it works, and may not be what was meant. */
type Problem = { level: 'warning' | 'error'; cure: string }

/**
 * Every problem that `posthorn doctor` can find, by its code, with the cure. A code never changes its meaning: scripts
 * compare it. The part before the dot is the area.
 */
export const PROBLEMS = {
  'settings.invalid': error('correct the variable; docs/configuration.md has all of them'),

  'database.unreachable': error(
    'check that PostgreSQL runs, that DATABASE_URL names its host and port, and that no firewall is between',
  ),
  'database.login_refused': error('check user and password in DATABASE_URL, and pg_hba.conf of PostgreSQL'),
  'database.missing': error('create the database that DATABASE_URL names, and run `posthorn migrate`'),
  'database.check_failed': error('repeat the command; if it fails again, read the log of PostgreSQL'),
  'database.version_unsupported': error('upgrade PostgreSQL to 15, 16, 17 or 18'),
  'database.version_untested': warning('use PostgreSQL 15, 16, 17 or 18: this release is tested on those'),
  'database.read_only': error('connect to the primary server, and allow the role to write'),
  'database.rights_missing': error('grant the role these rights, or make it the owner of the tables'),
  'database.fsync_off': error('set fsync = on: a crash of the server may destroy the database'),
  'database.full_page_writes_off': warning(
    'set full_page_writes = on, unless the file system never writes a page in part',
  ),
  'database.synchronous_commit_off': error(
    'set synchronous_commit = on for the role: a crash loses events that were answered 202',
  ),
  'database.pooler_undeclared': error('set DATABASE_POOLER=transaction, or connect to PostgreSQL itself'),
  'database.clock_differs': warning('have both machines follow a time server'),
  'database.migrations_pending': error('run `posthorn migrate` of this release'),
  'database.migrations_unknown': warning('replace this release by the one that migrated the database'),

  'temporal.unreachable': error('check that Temporal runs, and TEMPORAL_ADDRESS and the TEMPORAL_TLS files'),
  'temporal.access_refused': error('check TEMPORAL_API_KEY or the client certificate, and what they permit'),
  'temporal.check_failed': error('repeat the command; if it fails again, read the log of Temporal'),
  'temporal.namespace_missing': error('create the namespace that TEMPORAL_NAMESPACE names'),
  'temporal.namespace_unreadable': warning(
    'permit DescribeNamespace: without it a Temporal that lost its data is not noticed',
  ),
  'temporal.search_attributes_missing': error(
    'start a process, which registers them; where it may not, run `temporal operator search-attribute create --name NAME --type Keyword`',
  ),
  'temporal.search_attributes_mistyped': error(
    'give the namespace search attributes of these names with the type Keyword, or use another namespace',
  ),
  'temporal.search_attributes_unreadable': warning(
    'permit ListSearchAttributes, or make sure that all four exist with the type Keyword',
  ),
  'temporal.rights_missing': error('permit the identity of Posthorn to write in the namespace'),
  'temporal.worker_missing': error(
    'start `posthorn worker` or `posthorn serve` with this TEMPORAL_NAMESPACE and TEMPORAL_TASK_QUEUE',
  ),
  'temporal.workers_differ': warning('replace the workers of the older build, if no upgrade is in progress'),
  'temporal.backlog_old': warning('add workers'),

  'keys.missing': error('put this key into POSTHORN_ENCRYPTION_KEYS again, behind the newest one'),
  'keys.wrong': error('give this id in POSTHORN_ENCRYPTION_KEYS the key that the secrets were sealed with'),
  'keys.unsealed': error('restore these secrets from a backup, or create the webhooks anew'),
  'keys.rotation_unfinished': warning('run `posthorn re-encrypt`, then take the older keys out of the ring'),

  'http.proxy_untrusted': warning(
    'set TRUSTED_PROXIES to the addresses of the proxy with TLS: without it all senders share its address, so one of them can use up the limits of all',
  ),

  'outbound.guard_broken': error('do not start this build: Posthorn could reach its own network'),
  'outbound.http_allowed': warning('remove POSTHORN_ALLOW_HTTP in production'),
  'outbound.private_allowed': warning(
    'remove from POSTHORN_ALLOWED_CIDRS every range in which no receiver is meant to be',
  ),

  'mail.not_configured': warning('set SMTP_HOST: without it no mail is sent about failing webhooks'),
  'mail.unreachable': error('check that the mail server runs, and SMTP_HOST, SMTP_PORT and SMTP_TLS'),
  'mail.tls_failed': error('check SMTP_TLS and SMTP_PORT; the certificate has to be valid for SMTP_HOST'),
  'mail.login_refused': error('check SMTP_USER and SMTP_PASSWORD'),
  'mail.in_clear': warning('set SMTP_TLS to starttls or implicit: passwords and mails travel in clear'),

  'push.invalid': error('make a new VAPID_PRIVATE_KEY; docs/production.md has the command'),
  'push.subject_unusable': warning('set POSTHORN_PUBLIC_URL or SMTP_FROM, at which push services reach you'),

  'deliveries.check_failed': error('repeat the command; if it fails again, read the log of PostgreSQL'),
  'deliveries.overdue': error('cure the errors of the other areas first; then docs/troubleshooting.md'),
  'deliveries.unstarted': error(
    'start a process with a worker; if one runs, read `workflow_start.refused` and `sweep.failed` in its log',
  ),
  'deliveries.attempt_lost': error('start a process with a worker: its sweeper repeats these attempts'),
  'deliveries.unswept': error('start a process with a worker; if one runs, read `sweep.failed` in its log'),
  'deliveries.paused': warning(
    'unpause each in the Temporal UI, or with `temporal workflow unpause --workflow-id delivery/ID`; to end one, discard it',
  ),
  'deliveries.workflows_owed': warning(
    'Temporal is too small for this rate: give it more, or set FIRST_ATTEMPT to direct',
  ),
  'deliveries.workflow_gone': error('start a process with a worker: its sweeper starts new workflows'),
  'deliveries.workflow_stuck': error(
    'run workers of the build that began them, or let the sweeper of a worker replace them',
  ),

  'incidents.overdue': error(
    'start a process with a worker: its sweeper signals them; if one runs, read `sweep.call_refused` in its log',
  ),
  'incidents.notifications_stuck': error(
    'start a process with a worker; if one runs, examine the workflows of type `incident` in Temporal',
  ),

  'retry_jobs.unswept': error('start a process with a worker; if one runs, read `sweep.failed` in its log'),
  'retry_jobs.no_progress': error(
    'start a process with a worker; if one runs, examine the workflow of the job in Temporal',
  ),
  'retry_jobs.workflow_gone': error('start a process with a worker: its sweeper starts new workflows'),
  'retry_jobs.workflow_stuck': error(
    'examine the workflow of the job in Temporal: its last failure has the reason',
  ),

  'erasures.unswept': error('start a process with a worker; if one runs, read `sweep.failed` in its log'),
  'erasures.workflow_gone': error('start a process with a worker: its sweeper starts new workflows'),
  'erasures.workflow_stuck': error(
    'examine the workflow of the erasure in Temporal: its last failure has the reason',
  ),

  'retention.late': warning(
    'run `temporal schedule describe --schedule-id posthorn-retention`: unpause it where it is paused; else the failure of its last workflow has the reason',
  ),

  'relay.unreachable': error(
    "check that the platform's PostgreSQL runs, RELAY_DATABASE_URL, and that no pooler in transaction mode is between",
  ),
  'relay.outbox_missing': error(
    'run what `posthorn relay --print-sql` prints in that database; the role has to find the table in its search_path',
  ),
  'relay.rights_missing': error('grant the role of RELAY_DATABASE_URL these rights on posthorn_outbox'),
  'relay.pooler_used': error('connect to PostgreSQL itself: notifications and locks need a session'),
  'relay.rows_waiting': error(
    'start `posthorn relay`; if one runs, read the column error of these rows, and `relay.postponed` in its log',
  ),
  'relay.rows_parked': warning(
    'read their column error; correct and release them (SET parked_at = NULL), or delete them',
  ),
  'relay.key_refused': error('give RELAY_OPERATOR_KEY the secret of an operator key with the scope publish'),
} as const satisfies Record<string, Problem>

export type ProblemCode = keyof typeof PROBLEMS

function error(cure: string) {
  return { level: 'error', cure } as const
}

function warning(cure: string) {
  return { level: 'warning', cure } as const
}
