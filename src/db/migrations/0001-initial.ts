import type { MigrationInterface, QueryRunner } from 'typeorm'
import { CREATE_DELIVERIES, CREATE_EVENTS } from './initial/deliveries.ts'

/**
 * Creates organisations, members, and what belongs to members: API keys, sessions, push subscriptions, idempotency
 * keys.
 */
const CREATE_ORGANISATIONS = [
  `CREATE TABLE "organisation" (
    "id" text NOT NULL,
    "name" text NOT NULL,
    "email" text NOT NULL,
    "support_email" text,
    "time_zone" text NOT NULL,
    CONSTRAINT "PK_c725ae234ef1b74cce43d2d00c1" PRIMARY KEY ("id")
  )`,

  `CREATE TABLE "member" (
    "organisation_id" text NOT NULL,
    "id" text NOT NULL,
    "name" text NOT NULL,
    "email" text NOT NULL,
    "full_access" boolean NOT NULL,
    "push_enabled" boolean NOT NULL,
    "permissions" text array NOT NULL,
    CONSTRAINT "PK_08cde7dd3eba65c713187e62c51" PRIMARY KEY ("organisation_id", "id"),
    CONSTRAINT "FK_7594a52369dbe0de68f8ed7168e" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id")
  )`,

  `CREATE TABLE "api_key" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "member_id" text NOT NULL,
    "name" text NOT NULL,
    "prefix" text NOT NULL,
    "hash" bytea NOT NULL,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    "last_used_at" timestamptz,
    "revoked_at" timestamptz,
    "expires_at" timestamptz,
    CONSTRAINT "PK_b1bd840641b8acbaad89c3d8d11" PRIMARY KEY ("id"),
    CONSTRAINT "FK_18b981b60af756f5c44ce6fbb12" FOREIGN KEY ("organisation_id", "member_id")
      REFERENCES "member" ("organisation_id", "id") ON DELETE CASCADE
  )`,
  `CREATE UNIQUE INDEX "api_key_name_idx" ON "api_key" ("organisation_id", "member_id", "name")
    WHERE revoked_at IS NULL`,
  `CREATE UNIQUE INDEX "api_key_hash_idx" ON "api_key" ("hash")`,

  `CREATE TABLE "session" (
    "hash" bytea NOT NULL,
    "api_key_id" uuid NOT NULL,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    "expires_at" timestamptz NOT NULL,
    "key_hash" bytea NOT NULL,
    CONSTRAINT "PK_9a27ee81fbc0bb9e5260ed6f82d" PRIMARY KEY ("hash"),
    CONSTRAINT "FK_cd1db55adf92d0a5e2f3c0aa79f" FOREIGN KEY ("api_key_id") REFERENCES "api_key" ("id") ON DELETE CASCADE
  )`,
  `CREATE INDEX "session_api_key_idx" ON "session" ("api_key_id", "created_at")`,
  `CREATE INDEX "session_expires_idx" ON "session" ("expires_at")`,

  `CREATE TABLE "push_subscription" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "member_id" text NOT NULL,
    "endpoint" text NOT NULL,
    "p256dh" text NOT NULL,
    "auth" text NOT NULL,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT "PK_07fc861c0d2c38c1b830fb9cb5d" PRIMARY KEY ("id"),
    CONSTRAINT "FK_e4792962f7b87320461cb90bf40" FOREIGN KEY ("organisation_id", "member_id")
      REFERENCES "member" ("organisation_id", "id") ON DELETE CASCADE
  )`,
  `CREATE UNIQUE INDEX "push_subscription_endpoint_idx"
    ON "push_subscription" ("organisation_id", "member_id", "endpoint")`,

  `CREATE TABLE "idempotency_key" (
    "organisation_id" text NOT NULL,
    "member_id" text NOT NULL,
    "operation" text NOT NULL,
    "key" text NOT NULL,
    "digest" bytea NOT NULL,
    "response" jsonb,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT "PK_c8e9ef972ec96996f1359dedd7e" PRIMARY KEY ("organisation_id", "member_id", "operation", "key"),
    CONSTRAINT "FK_4cb4834cbd24e65387ae3069ca3" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id")
  )`,
  `CREATE INDEX "idempotency_key_created_idx" ON "idempotency_key" ("created_at")`,
]

/** Creates incidents and their notifications. */
const CREATE_INCIDENTS = [
  `CREATE TABLE "incident" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "webhook_id" uuid NOT NULL,
    "opened_at" timestamptz NOT NULL DEFAULT now(),
    "closed_at" timestamptz,
    "resumed_at" timestamptz,
    "exhausted_at" timestamptz,
    "first_notified_at" timestamptz,
    "second_notified_at" timestamptz,
    "resting" boolean NOT NULL DEFAULT false,
    "sweep_at" timestamptz,
    CONSTRAINT "PK_5f90b28b0b8238d89ee8edcf96e" PRIMARY KEY ("id"),
    CONSTRAINT "FK_bf8936bb457206cddabf8559f15" FOREIGN KEY ("webhook_id") REFERENCES "webhook" ("id")
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
    "claimed_at" timestamptz,
    "sent_at" timestamptz,
    "error" text,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT "notification_kind_check" CHECK ("kind" IN (1, 2)),
    CONSTRAINT "notification_channel_check" CHECK ("channel" IN ('email', 'push')),
    CONSTRAINT "notification_state_check" CHECK ("state" IN ('pending', 'sending', 'sent', 'failed', 'unknown')),
    CONSTRAINT "PK_705b6c7cdf9b2c2ff7ac7872cb7" PRIMARY KEY ("id"),
    CONSTRAINT "FK_b24d909016bd67eef08e0f8e952" FOREIGN KEY ("incident_id")
      REFERENCES "incident" ("id") ON DELETE CASCADE
  )`,
  `CREATE UNIQUE INDEX "notification_recipient_idx" ON "notification" ("incident_id", "kind", "channel", "recipient")`,
]

/** Creates the audit trail. Triggers refuse every change of an entry, and its deletion before it is 30 days old. */
const CREATE_AUDIT = [
  `CREATE TABLE "audit_entry" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "at" timestamptz NOT NULL DEFAULT now(),
    "member_id" text,
    "api_key_id" uuid,
    "action" text NOT NULL,
    "webhook_id" uuid,
    "delivery_id" uuid,
    "details" jsonb NOT NULL,
    "address" text,
    "request_id" text,
    CONSTRAINT "PK_58a130a4b9da189f46ba2a01801" PRIMARY KEY ("id")
  )`,
  `CREATE INDEX "audit_entry_organisation_idx" ON "audit_entry" ("organisation_id", "id")`,
  `CREATE INDEX "audit_entry_purge_idx" ON "audit_entry" ("at")`,
  `CREATE FUNCTION "audit_entry_append_only"() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     IF TG_OP = 'DELETE' AND OLD.at < now() - interval '30 days' THEN RETURN OLD; END IF;
     RAISE EXCEPTION 'the audit trail is append-only';
   END $$`,
  `CREATE TRIGGER "audit_entry_append_only" BEFORE UPDATE OR DELETE ON "audit_entry"
    FOR EACH ROW EXECUTE FUNCTION "audit_entry_append_only"()`,
  `CREATE TRIGGER "audit_entry_not_truncated" BEFORE TRUNCATE ON "audit_entry"
    FOR EACH STATEMENT EXECUTE FUNCTION "audit_entry_append_only"()`,
]

/** Creates the schema of the first release. The statements of events and deliveries are in `initial/`. */
export class Initial1 implements MigrationInterface {
  readonly name = 'Initial1764000000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

/** Referenced tables before the tables that reference them. */
const UP = [
  ...CREATE_ORGANISATIONS,
  ...CREATE_EVENTS,
  ...CREATE_DELIVERIES,
  ...CREATE_INCIDENTS,
  ...CREATE_AUDIT,
]

/** The reverse order. Indexes, sequences and triggers are dropped with their table. */
const DOWN = [
  `DROP TABLE "audit_entry"`,
  `DROP FUNCTION "audit_entry_append_only"()`,
  `DROP TABLE "notification"`,
  `DROP TABLE "incident"`,
  `DROP TABLE "retry_job_webhook"`,
  `DROP TABLE "retry_job"`,
  `DROP TABLE "attempt"`,
  `DROP TABLE "delivery"`,
  `DROP TABLE "webhook"`,
  `DROP TABLE "stream_ticket"`,
  `DROP TABLE "event_horizon"`,
  `DROP TABLE "event"`,
  `DROP TABLE "idempotency_key"`,
  `DROP TABLE "push_subscription"`,
  `DROP TABLE "session"`,
  `DROP TABLE "api_key"`,
  `DROP TABLE "member"`,
  `DROP TABLE "organisation"`,
]
