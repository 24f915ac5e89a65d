import type { MigrationInterface, QueryRunner } from 'typeorm'
import { applyStatements } from './migration-steps.ts'

/**
 * Has PostgreSQL hold what each state of a delivery implies, and gives the protocol its clock. For this step all processes
 * of Posthorn have to be stopped: columns are renamed, and rows are changed.
 *
 * @throws Error while a process is connected, or that names rows which no state allows
 */
export class DeliveryProtocol10 implements MigrationInterface {
  readonly name = 'DeliveryProtocol1764900000000'

  async up(runner: QueryRunner): Promise<void> {
    await refuseOtherProcesses(runner)
    await applyStatements(runner, [...FUNCTIONS, ...RENAMES, ...REPAIRS])
    await refuseImpossibleRows(runner)
    const checks = DELIVERY_CHECKS.map(([name, condition]) => `ADD CONSTRAINT "${name}" CHECK (${condition})`)
    // One statement reads the table once.
    await applyStatements(runner, [
      `-- squawk-ignore constraint-missing-not-valid
ALTER TABLE "delivery" ${checks.join(', ')}`,
    ])
    await applyStatements(runner, INDEXES)
  }

  async down(runner: QueryRunner): Promise<void> {
    await applyStatements(runner, DOWN)
  }
}

/** @throws Error that names five rows that a constraint does not allow, each with its state and these constraints */
async function refuseImpossibleRows(runner: QueryRunner): Promise<void> {
  const names = DELIVERY_CHECKS.map(([name, condition]) => `CASE WHEN NOT (${condition}) THEN '${name}' END`)
  const conditions = DELIVERY_CHECKS.map(([, condition]) => `(${condition})`)
  const found = (await runner.query(
    `SELECT "id", "state", concat_ws(', ', ${names.join(', ')}) AS "checks"
       FROM "delivery" WHERE NOT (${conditions.join(' AND ')}) LIMIT 5`,
  )) as { id: string; state: string; checks: string }[]
  if (found.length === 0) return
  const rows = found.map(({ id, state, checks }) => `${id} (${state}: ${checks})`).join('\n')
  throw new Error(
    `These deliveries are in a state that does not exist, and have to be repaired first:\n${rows}`,
  )
}

/** What each state implies, so that no statement can leave a row without a next step. */
const DELIVERY_CHECKS = [
  ['delivery_open_check', `("completed_at" IS NULL) = ("state" IN ('pending', 'in_progress', 'waiting'))`],
  ['delivery_sweep_check', `"completed_at" IS NOT NULL OR "sweep_at" IS NOT NULL`],
  ['delivery_owner_check', `("owner" IS NOT NULL) = ("state" = 'in_progress')`],
  ['delivery_lease_check', `("owner" IS NULL) = ("lease_until" IS NULL)`],
  ['delivery_runs_check', `("runs" > 0) = ("state" = 'in_progress') OR "state" = 'stopped'`],
  [
    'delivery_attempts_check',
    `"state" IN ('in_progress', 'stopped') OR ("attempts" = 0) = ("state" = 'pending')`,
  ],
  ['delivery_due_check', `("next_attempt_at" IS NOT NULL) = ("completed_at" IS NULL AND "attempts" > 0)`],
  ['delivery_requested_check', `NOT "attempt_requested" OR "state" = 'in_progress'`],
  ['delivery_retry_check', `NOT "retry_requested" OR "completed_at" IS NULL`],
  ['delivery_paused_check', `"paused_since" IS NULL OR "state" IN ('pending', 'waiting', 'in_progress')`],
  ['delivery_stopped_check', `("stop_reason" IS NOT NULL) = ("state" = 'stopped')`],
  ['delivery_test_check', `NOT "is_test" OR "state" NOT IN ('waiting', 'failed')`],
] as const

const FUNCTIONS = [
  // The clock of every statement of the protocol. Only test databases replace it.
  `CREATE FUNCTION "delivery_now"() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
     AS $$ SELECT date_trunc('milliseconds', statement_timestamp()) $$`,
  // Why a webhook takes no delivery with an event key; null where it takes it. The subscription is the authority.
  `CREATE FUNCTION "stop_reason_of"("deleted_at" timestamptz, "enabled" boolean, "keys" text[], "key" text)
     RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
     AS $$ SELECT CASE WHEN "deleted_at" IS NOT NULL THEN 'webhook_deleted'
                       WHEN NOT "enabled" THEN 'webhook_disabled'
                       WHEN NOT ("keys" = ARRAY['*'] OR "key" = ANY ("keys" || 'webhook:test'::text)) THEN 'unsubscribed'
                  END $$`,
  // Whether a webhook has a delivery that failed at least once and is neither completed nor stopped. Until it has none,
  // its open incident stays open.
  `CREATE FUNCTION "has_unresolved"("webhook" uuid) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
     AS $$ SELECT EXISTS (SELECT 1 FROM "delivery" WHERE "webhook_id" = "webhook"
                             AND "state" IN ('waiting', 'failed', 'in_progress') AND "attempts" > 0) $$`,
]

const RENAMES = [
  `-- squawk-ignore renaming-column
ALTER TABLE "delivery" RENAME COLUMN "started_at" TO "workflow_started_at"`,
  `-- squawk-ignore renaming-column
ALTER TABLE "delivery" RENAME COLUMN "claims" TO "runs"`,
  `-- squawk-ignore require-concurrent-index-deletion
DROP INDEX "delivery_unstarted_idx"`,
  `-- squawk-ignore require-concurrent-index-deletion
DROP INDEX "delivery_started_idx"`,
  `-- squawk-ignore require-concurrent-index-deletion
DROP INDEX "delivery_signal_idx"`,
  `-- squawk-ignore require-concurrent-index-deletion
DROP INDEX "delivery_backfill_idx"`,
]

/** Brings rows of the version before into the states as they are now. */
const REPAIRS = [
  // A run may have been lost before its first record: its POST may have been sent.
  `UPDATE "delivery"
      SET "state" = 'in_progress', "runs" = greatest("runs", 1), "owner" = coalesce("owner", gen_random_uuid()),
          "lease_until" = coalesce("lease_until", now()), "sweep_at" = now()
    WHERE "state" = 'pending' AND "runs" > 0 AND "attempts" = 0
       OR "state" = 'in_progress' AND ("owner" IS NULL OR "lease_until" IS NULL OR "runs" = 0 OR "sweep_at" IS NULL)`,
  `UPDATE "delivery" SET "state" = 'waiting', "next_attempt_at" = coalesce("next_attempt_at", now())
    WHERE "state" = 'pending' AND "attempts" > 0`,
  `UPDATE "delivery" SET "state" = 'pending' WHERE "state" = 'waiting' AND "attempts" = 0`,
  `UPDATE "delivery" SET "next_attempt_at" = CASE WHEN "attempts" > 0 THEN now() END
    WHERE "state" IN ('pending', 'in_progress', 'waiting') AND ("next_attempt_at" IS NOT NULL) <> ("attempts" > 0)`,
  // Accepted, never attempted, and no longer held up: these resume.
  `UPDATE "delivery" d
      SET "state" = 'pending', "stop_reason" = NULL, "completed_at" = NULL, "workflow_started_at" = NULL, "sweep_at" = now()
     FROM "webhook" w, "event" e
    WHERE d."state" = 'stopped' AND d."attempts" = 0 AND NOT d."is_test"
      AND d."stop_reason" IN ('webhook_disabled', 'unsubscribed') AND w."id" = d."webhook_id" AND e."id" = d."event_id"
      AND stop_reason_of(w."deleted_at", w."enabled", w."subscribed_event_keys", e."key") IS NULL`,
  `UPDATE "delivery" SET "owner" = NULL, "lease_until" = NULL, "runs" = 0, "attempt_requested" = false
    WHERE "state" <> 'in_progress' AND ("owner" IS NOT NULL OR "lease_until" IS NOT NULL OR "runs" > 0 OR "attempt_requested")`,
  `UPDATE "delivery"
      SET "next_attempt_at" = NULL, "retry_requested" = false, "paused_since" = NULL,
          "completed_at" = coalesce("completed_at", now())
    WHERE "state" IN ('completed', 'failed', 'stopped')
      AND ("next_attempt_at" IS NOT NULL OR "retry_requested" OR "paused_since" IS NOT NULL OR "completed_at" IS NULL)`,
  // Its workflow, where it had one, is owed a signal; what was never attempted is owed no workflow that follows.
  `UPDATE "delivery" SET "sweep_at" = NULL
    WHERE "state" = 'stopped' AND "attempts" = 0 AND "workflow_started_at" IS NULL AND "sweep_at" IS NOT NULL`,
  `UPDATE "delivery" SET "sweep_at" = coalesce("sweep_at", now()), "completed_at" = NULL
    WHERE "state" IN ('pending', 'in_progress', 'waiting') AND ("sweep_at" IS NULL OR "completed_at" IS NOT NULL)`,
]

const INDEXES = [
  `-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "delivery_unstarted_idx" ON "delivery" ("webhook_id", "sweep_at")
    WHERE completed_at IS NULL AND workflow_started_at IS NULL`,
  `-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "delivery_started_idx" ON "delivery" ("webhook_id", "sweep_at")
    WHERE completed_at IS NULL AND workflow_started_at IS NOT NULL`,
  `-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "delivery_signal_idx" ON "delivery" ("sweep_at")
    WHERE completed_at IS NOT NULL AND sweep_at IS NOT NULL AND workflow_started_at IS NOT NULL`,
  `-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "delivery_follow_idx" ON "delivery" ("sweep_at")
    WHERE completed_at IS NOT NULL AND sweep_at IS NOT NULL AND workflow_started_at IS NULL`,
]

const DOWN = [
  ...DELIVERY_CHECKS.map(([name]) => `ALTER TABLE "delivery" DROP CONSTRAINT "${name}"`),
  `DROP INDEX "delivery_unstarted_idx"`,
  `DROP INDEX "delivery_started_idx"`,
  `DROP INDEX "delivery_signal_idx"`,
  `DROP INDEX "delivery_follow_idx"`,
  `ALTER TABLE "delivery" RENAME COLUMN "workflow_started_at" TO "started_at"`,
  `ALTER TABLE "delivery" RENAME COLUMN "runs" TO "claims"`,
  `CREATE INDEX "delivery_unstarted_idx" ON "delivery" ("webhook_id", "sweep_at")
    WHERE state IN ('pending', 'in_progress', 'waiting') AND started_at IS NULL AND attempts = 0`,
  `CREATE INDEX "delivery_started_idx" ON "delivery" ("sweep_at")
    WHERE state IN ('pending', 'in_progress', 'waiting') AND (started_at IS NOT NULL OR attempts > 0)`,
  `CREATE INDEX "delivery_signal_idx" ON "delivery" ("sweep_at")
    WHERE sweep_at IS NOT NULL AND (state = 'stopped' OR state = 'completed' AND started_at IS NOT NULL)`,
  `CREATE INDEX "delivery_backfill_idx" ON "delivery" ("sweep_at")
    WHERE sweep_at IS NOT NULL AND state = 'completed' AND started_at IS NULL`,
  `DROP FUNCTION "has_unresolved"(uuid)`,
  `DROP FUNCTION "stop_reason_of"(timestamptz, boolean, text[], text)`,
  `DROP FUNCTION "delivery_now"()`,
]

/**
 * Refuses a migration that needs every process of Posthorn stopped while one is connected to this database. A database
 * without an organisation is not in use yet.
 *
 * @throws Error that says how many sessions there are, from where, and what to do
 */
async function refuseOtherProcesses(runner: QueryRunner): Promise<void> {
  const [others] = (await runner.query(
    `SELECT count(*)::int AS "count", string_agg(DISTINCT coalesce(host("client_addr"), 'this machine'), ', ') AS "hosts"
       FROM "pg_stat_activity"
      WHERE "datname" = current_database() AND "application_name" = 'posthorn' AND "pid" <> pg_backend_pid()
        AND EXISTS (SELECT 1 FROM "organisation")`,
  )) as [{ count: number; hosts: string | null }]
  if (others.count === 0) return
  throw new Error(
    [
      'This migration needs all processes of Posthorn stopped.',
      `Sessions of Posthorn that are connected to this database: ${others.count}, from ${others.hosts}.`,
      'Stop every posthorn serve, api and worker, and run posthorn migrate again. Nothing was changed by this migration.',
      'A pooler may keep the sessions of stopped processes: end them with pg_terminate_backend.',
    ].join('\n'),
  )
}
