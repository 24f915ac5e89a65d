import type { MigrationInterface, QueryRunner } from 'typeorm'

/** Adds descriptions of webhooks, selections of retry jobs, a mark of test events, and the indexes of searches. */
export class DeveloperArea4 implements MigrationInterface {
  readonly name = 'DeveloperArea1764300000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `ALTER TABLE "event" ADD COLUMN "is_test" boolean NOT NULL DEFAULT false`,
  `ALTER TABLE "webhook" ADD COLUMN "description" text NOT NULL DEFAULT ''`,
  `ALTER TABLE "retry_job"
    ADD COLUMN "filter" jsonb,
    ADD COLUMN "delivery_ids" uuid array,
    DROP CONSTRAINT "retry_job_mode_check",
    ADD CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force', 'stopped', 'undelivered'))`,
  // Stopped deliveries of test events are in no other partial index.
  `CREATE INDEX "delivery_test_idx" ON "delivery" ("webhook_id", "id") WHERE is_test`,
  `CREATE INDEX "event_trace_idx" ON "event" ("organisation_id", "trace_id", "sequence")`,
]

/** The version before would retry everything that the mode of a job covers, whatever was selected. */
const DOWN = [
  `DROP INDEX "event_trace_idx"`,
  `DROP INDEX "delivery_test_idx"`,
  `DELETE FROM "retry_job" WHERE "mode" = 'undelivered' OR "filter" IS NOT NULL OR "delivery_ids" IS NOT NULL`,
  `ALTER TABLE "retry_job"
    DROP COLUMN "filter",
    DROP COLUMN "delivery_ids",
    DROP CONSTRAINT "retry_job_mode_check",
    ADD CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force', 'stopped'))`,
  `ALTER TABLE "webhook" DROP COLUMN "description"`,
  `ALTER TABLE "event" DROP COLUMN "is_test"`,
]
