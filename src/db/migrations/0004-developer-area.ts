import { createMigration } from './migration-steps.ts'

const UP = [
  `ALTER TABLE "event" ADD COLUMN "is_test" boolean NOT NULL DEFAULT false`,
  `ALTER TABLE "webhook" ADD COLUMN "description" text NOT NULL DEFAULT ''`,
  `ALTER TABLE "retry_job"
    ADD COLUMN "filter" jsonb,
    ADD COLUMN "delivery_ids" uuid array,
    DROP CONSTRAINT "retry_job_mode_check",
    ADD CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force', 'stopped', 'undelivered')) NOT VALID`,
]

/** The version before would retry everything that the mode of a job covers, whatever was selected. */
const DOWN = [
  `DELETE FROM "retry_job" WHERE "mode" = 'undelivered' OR "filter" IS NOT NULL OR "delivery_ids" IS NOT NULL`,
  `ALTER TABLE "retry_job"
    DROP COLUMN "filter",
    DROP COLUMN "delivery_ids",
    DROP CONSTRAINT "retry_job_mode_check",
    ADD CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force', 'stopped'))`,
  `ALTER TABLE "webhook" DROP COLUMN "description"`,
  `ALTER TABLE "event" DROP COLUMN "is_test"`,
]

/** Adds descriptions of webhooks, selections of retry jobs and a mark of test events. */
export const DeveloperArea4 = createMigration('DeveloperArea1764300000000', UP, DOWN)
