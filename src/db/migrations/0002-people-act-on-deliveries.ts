import type { MigrationInterface, QueryRunner } from 'typeorm'

/** Retry jobs, intents of people on deliveries, and the indexes of lists and statistics. */
export class PeopleActOnDeliveries2 implements MigrationInterface {
  readonly name = 'PeopleActOnDeliveries1764100000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `CREATE TABLE "retry_job" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "webhook_id" uuid,
    "mode" text NOT NULL,
    "requested_by" text NOT NULL,
    "state" text NOT NULL DEFAULT 'running',
    "sweep_at" timestamptz,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force')),
    CONSTRAINT "retry_job_state_check" CHECK ("state" IN ('running', 'done')),
    CONSTRAINT "PK_RETRY_JOB" PRIMARY KEY ("id"),
    CONSTRAINT "FK_b920e3c5f770279cdf7016cfed2" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id"),
    CONSTRAINT "FK_939c64d36c6d49a005d7a4530f8" FOREIGN KEY ("webhook_id") REFERENCES "webhook" ("id")
  )`,
  `CREATE INDEX "retry_job_sweep_idx" ON "retry_job" ("sweep_at") WHERE sweep_at IS NOT NULL`,
  `CREATE TABLE "retry_job_webhook" (
    "job_id" uuid NOT NULL,
    "webhook_id" uuid NOT NULL,
    "total" integer NOT NULL,
    "done" integer NOT NULL DEFAULT 0,
    "cursor" uuid,
    "under_way" uuid array NOT NULL DEFAULT '{}',
    "finished" boolean NOT NULL DEFAULT false,
    CONSTRAINT "PK_RETRY_JOB_WEBHOOK" PRIMARY KEY ("job_id", "webhook_id"),
    CONSTRAINT "FK_d62acdba56f95b1db659ee1e6ba" FOREIGN KEY ("job_id") REFERENCES "retry_job" ("id") ON DELETE CASCADE,
    CONSTRAINT "FK_21c2194da46a8242dac7bd66a94" FOREIGN KEY ("webhook_id") REFERENCES "webhook" ("id")
  )`,
  `ALTER TABLE "delivery" ADD COLUMN "retry_requested" boolean NOT NULL DEFAULT false`,
  `ALTER TABLE "delivery" ADD COLUMN "revived" boolean NOT NULL DEFAULT false`,
  `ALTER TABLE "attempt" ADD COLUMN "webhook_id" uuid`,
  `UPDATE "attempt" a SET webhook_id = d.webhook_id FROM "delivery" d WHERE d.id = a.delivery_id`,
  `ALTER TABLE "attempt" ALTER COLUMN "webhook_id" SET NOT NULL`,
  `CREATE INDEX "attempt_webhook_idx" ON "attempt" ("webhook_id", "started_at")`,
  `DROP INDEX "delivery_webhook_idx"`,
  `DROP INDEX "delivery_sweep_idx"`,
  `CREATE INDEX "delivery_webhook_idx" ON "delivery" ("webhook_id", "id")`,
  `CREATE INDEX "delivery_waiting_idx" ON "delivery" ("webhook_id", "id") WHERE state = 'waiting'`,
  `CREATE INDEX "delivery_failed_idx" ON "delivery" ("webhook_id", "id") WHERE state = 'failed'`,
  `CREATE INDEX "delivery_sweep_idx" ON "delivery" ("sweep_at") WHERE state IN ('pending', 'in_progress', 'waiting')`,
  `CREATE INDEX "delivery_tell_idx" ON "delivery" ("sweep_at") WHERE sweep_at IS NOT NULL AND state = 'stopped'`,
]

const DOWN = [
  `DROP INDEX "delivery_tell_idx"`,
  `DROP INDEX "delivery_sweep_idx"`,
  `DROP INDEX "delivery_failed_idx"`,
  `DROP INDEX "delivery_waiting_idx"`,
  `DROP INDEX "delivery_webhook_idx"`,
  `CREATE INDEX "delivery_webhook_idx" ON "delivery" ("webhook_id", "created_at", "id")`,
  `CREATE INDEX "delivery_sweep_idx" ON "delivery" ("sweep_at") WHERE sweep_at IS NOT NULL`,
  `DROP INDEX "attempt_webhook_idx"`,
  `ALTER TABLE "attempt" DROP COLUMN "webhook_id"`,
  `ALTER TABLE "delivery" DROP COLUMN "revived"`,
  `ALTER TABLE "delivery" DROP COLUMN "retry_requested"`,
  `DROP TABLE "retry_job_webhook"`,
  `DROP TABLE "retry_job"`,
]
