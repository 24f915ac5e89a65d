import type { MigrationInterface, QueryRunner } from 'typeorm'

/**
 * Records why a delivery is stopped and which deliveries are test events, and lets a retry job resume stopped ones.
 *
 * Test events of before that wait for a retry or failed permanently are stopped, and their attempts no longer count
 * for their webhook. An incident that only they kept open is closed. Deliveries that were stopped before have no
 * reason: they can be retried one by one.
 */
export class StoppedAndTestDeliveries16 implements MigrationInterface {
  readonly name = 'StoppedAndTestDeliveries1765500000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `ALTER TABLE "delivery" ADD COLUMN "is_test" boolean NOT NULL DEFAULT false`,
  `ALTER TABLE "delivery" ADD COLUMN "stop_reason" text`,
  `ALTER TABLE "delivery" ADD CONSTRAINT "delivery_stop_reason_check" CHECK (
    "stop_reason" IN ('webhook_disabled', 'webhook_deleted', 'unsubscribed', 'discarded', 'test_failed'))`,
  `UPDATE "delivery" d
      SET is_test = true,
          state = CASE WHEN d.state IN ('waiting', 'failed') THEN 'stopped' ELSE d.state END,
          stop_reason = CASE WHEN d.state IN ('waiting', 'failed') THEN 'test_failed' END,
          next_attempt_at = CASE WHEN d.state IN ('waiting', 'failed') THEN NULL ELSE d.next_attempt_at END,
          retry_requested = d.retry_requested AND d.state NOT IN ('waiting', 'failed'),
          completed_at = CASE WHEN d.state IN ('waiting', 'failed') THEN now() ELSE d.completed_at END,
          sweep_at = CASE WHEN d.state = 'waiting' THEN now() ELSE d.sweep_at END
     FROM "event" e WHERE e.id = d.event_id AND e.key = 'webhook:test'`,
  `ALTER TABLE "attempt" ALTER COLUMN "webhook_id" DROP NOT NULL`,
  `UPDATE "attempt" a SET webhook_id = NULL FROM "delivery" d WHERE d.id = a.delivery_id AND d.is_test`,
  `UPDATE "incident" i SET closed_at = now(), resting = false, sweep_at = now()
    WHERE i.closed_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM "delivery" d
       WHERE d.webhook_id = i.webhook_id AND d.state IN ('waiting', 'failed', 'in_progress') AND d.attempts > 0)`,
  `CREATE INDEX "delivery_stopped_idx" ON "delivery" ("webhook_id", "id") WHERE state = 'stopped' AND NOT is_test`,
  `ALTER TABLE "retry_job" DROP CONSTRAINT "retry_job_mode_check"`,
  `ALTER TABLE "retry_job" ADD CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force', 'stopped'))`,
  `ALTER TABLE "retry_job_webhook" ADD COLUMN "succeeded" integer NOT NULL DEFAULT 0`,
  `ALTER TABLE "retry_job_webhook" ADD COLUMN "failed" integer NOT NULL DEFAULT 0`,
  `ALTER TABLE "retry_job_webhook" ADD COLUMN "under_way_numbers" integer array NOT NULL DEFAULT '{}'`,
]

const DOWN = [
  `ALTER TABLE "retry_job_webhook" DROP COLUMN "under_way_numbers"`,
  `ALTER TABLE "retry_job_webhook" DROP COLUMN "failed"`,
  `ALTER TABLE "retry_job_webhook" DROP COLUMN "succeeded"`,
  `DELETE FROM "retry_job_webhook" WHERE job_id IN (SELECT id FROM "retry_job" WHERE mode = 'stopped')`,
  `DELETE FROM "retry_job" WHERE mode = 'stopped'`,
  `ALTER TABLE "retry_job" DROP CONSTRAINT "retry_job_mode_check"`,
  `ALTER TABLE "retry_job" ADD CONSTRAINT "retry_job_mode_check" CHECK ("mode" IN ('failed', 'force'))`,
  `DROP INDEX "delivery_stopped_idx"`,
  `UPDATE "attempt" a SET webhook_id = d.webhook_id FROM "delivery" d WHERE d.id = a.delivery_id AND a.webhook_id IS NULL`,
  `ALTER TABLE "attempt" ALTER COLUMN "webhook_id" SET NOT NULL`,
  `ALTER TABLE "delivery" DROP CONSTRAINT "delivery_stop_reason_check"`,
  `ALTER TABLE "delivery" DROP COLUMN "stop_reason"`,
  `ALTER TABLE "delivery" DROP COLUMN "is_test"`,
]
