import { createMigration } from './migration-steps.ts'

const CHANGES = [
  `ADD COLUMN "replay" jsonb`,
  `DROP CONSTRAINT "retry_job_mode_check"`,
  `ADD CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force', 'stopped', 'undelivered', 'replay'))`,
  `DROP CONSTRAINT "retry_job_state_check"`,
  `ADD CONSTRAINT "retry_job_state_check" CHECK ("state" IN ('running', 'done', 'cancelled'))`,
  `ADD CONSTRAINT "retry_job_replay_check" CHECK (("mode" = 'replay') = ("replay" IS NOT NULL))`,
]

const UP = [
  // The table has the jobs of 30 days: reading it for the constraints takes milliseconds.
  `-- squawk-ignore constraint-missing-not-valid
ALTER TABLE "retry_job" ${CHANGES.join(', ')}`,
  `ALTER TABLE "retry_job_webhook" ADD COLUMN "event_cursor" bigint NOT NULL DEFAULT 0`,
]

const DOWN = [
  `DELETE FROM "retry_job" WHERE "mode" = 'replay'`,
  `ALTER TABLE "retry_job_webhook" DROP COLUMN "event_cursor"`,
  `ALTER TABLE "retry_job"
    DROP CONSTRAINT "retry_job_replay_check",
    DROP COLUMN "replay",
    DROP CONSTRAINT "retry_job_state_check",
    ADD CONSTRAINT "retry_job_state_check" CHECK ("state" IN ('running', 'done')),
    DROP CONSTRAINT "retry_job_mode_check",
    ADD CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force', 'stopped', 'undelivered'))`,
]

/** Adds replays to retry jobs. */
export const Replays12 = createMigration('Replays1765100000000', UP, DOWN)
