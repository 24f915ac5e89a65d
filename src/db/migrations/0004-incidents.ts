import type { MigrationInterface, QueryRunner } from 'typeorm'

/**
 * Incidents with their notifications, and where members take push messages. A webhook that failed before this has an
 * incident from its next failure on. The attempts' index by webhook becomes two, of which each attempt is in one: the
 * failures since the last success are then found without reading all of them.
 */
export class Incidents4 implements MigrationInterface {
  readonly name = 'Incidents1764300000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

const UP = [
  `CREATE TABLE "incident" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "webhook_id" uuid NOT NULL,
    "opened_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
    "closed_at" TIMESTAMP WITH TIME ZONE,
    "resumed_at" TIMESTAMP WITH TIME ZONE,
    "exhausted_at" TIMESTAMP WITH TIME ZONE,
    "first_notified_at" TIMESTAMP WITH TIME ZONE,
    "second_notified_at" TIMESTAMP WITH TIME ZONE,
    "resting" boolean NOT NULL DEFAULT false,
    "sweep_at" TIMESTAMP WITH TIME ZONE,
    CONSTRAINT "PK_5f90b28b0b8238d89ee8edcf96e" PRIMARY KEY ("id"),
    CONSTRAINT "FK_bf8936bb457206cddabf8559f15" FOREIGN KEY ("webhook_id") REFERENCES "webhook"("id")
  )`,
  `CREATE UNIQUE INDEX "incident_open_idx" ON "incident" ("webhook_id") WHERE closed_at IS NULL`,
  `CREATE INDEX "incident_webhook_idx" ON "incident" ("webhook_id", "opened_at")`,
  `CREATE INDEX "incident_sweep_idx" ON "incident" ("sweep_at") WHERE sweep_at IS NOT NULL`,
  `CREATE INDEX "incident_purge_idx" ON "incident" ("closed_at") WHERE closed_at IS NOT NULL`,
  `CREATE TABLE "notification" (
    "id" uuid NOT NULL,
    "incident_id" uuid NOT NULL,
    "kind" smallint NOT NULL,
    "channel" text NOT NULL,
    "recipient" text NOT NULL,
    "state" text NOT NULL DEFAULT 'pending',
    "claim" uuid,
    "claimed_at" TIMESTAMP WITH TIME ZONE,
    "sent_at" TIMESTAMP WITH TIME ZONE,
    "error" text,
    "created_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
    CONSTRAINT "PK_705b6c7cdf9b2c2ff7ac7872cb7" PRIMARY KEY ("id"),
    CONSTRAINT "FK_b24d909016bd67eef08e0f8e952" FOREIGN KEY ("incident_id") REFERENCES "incident"("id") ON DELETE CASCADE,
    CONSTRAINT "notification_kind_check" CHECK ("kind" IN (1, 2)),
    CONSTRAINT "notification_channel_check" CHECK ("channel" IN ('email', 'push')),
    CONSTRAINT "notification_state_check" CHECK ("state" IN ('pending', 'sending', 'sent', 'failed', 'unknown'))
  )`,
  `CREATE UNIQUE INDEX "notification_recipient_idx" ON "notification" ("incident_id", "kind", "channel", "recipient")`,
  `CREATE TABLE "push_subscription" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "member_id" text NOT NULL,
    "endpoint" text NOT NULL,
    "p256dh" text NOT NULL,
    "auth" text NOT NULL,
    "created_at" TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now(),
    CONSTRAINT "PK_07fc861c0d2c38c1b830fb9cb5d" PRIMARY KEY ("id"),
    CONSTRAINT "FK_e4792962f7b87320461cb90bf40" FOREIGN KEY ("organisation_id", "member_id")
      REFERENCES "member"("organisation_id", "id") ON DELETE CASCADE
  )`,
  `CREATE UNIQUE INDEX "push_subscription_endpoint_idx" ON "push_subscription" ("organisation_id", "member_id", "endpoint")`,
  `CREATE INDEX "delivery_unresolved_idx" ON "delivery" ("webhook_id")
    WHERE state IN ('waiting', 'failed', 'in_progress') AND attempts > 0`,
  `CREATE INDEX "attempt_succeeded_idx" ON "attempt" ("webhook_id", "started_at") WHERE outcome = 'succeeded'`,
  `CREATE INDEX "attempt_failed_idx" ON "attempt" ("webhook_id", "started_at") WHERE outcome = 'failed'`,
  `DROP INDEX "attempt_webhook_idx"`,
]

const DOWN = [
  `CREATE INDEX "attempt_webhook_idx" ON "attempt" ("webhook_id", "started_at")`,
  `DROP INDEX "attempt_failed_idx"`,
  `DROP INDEX "attempt_succeeded_idx"`,
  `DROP INDEX "delivery_unresolved_idx"`,
  `DROP TABLE "push_subscription"`,
  `DROP TABLE "notification"`,
  `DROP TABLE "incident"`,
]
