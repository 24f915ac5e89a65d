import type { MigrationInterface, QueryRunner } from 'typeorm'

/** Organisations, members, keys, webhooks, events, deliveries, attempts, idempotency keys. */
export class Initial1 implements MigrationInterface {
  readonly name = 'Initial1764000000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.query(`DROP TABLE "${table}"`)
  }
}

/** Children before parents. */
const TABLES = [
  'idempotency_key',
  'attempt',
  'delivery',
  'webhook',
  'event',
  'api_key',
  'member',
  'organisation',
]

const UP = [
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
  `CREATE UNIQUE INDEX "api_key_name_idx" ON "api_key" ("organisation_id", "member_id", "name")`,
  `CREATE UNIQUE INDEX "api_key_hash_idx" ON "api_key" ("hash")`,
  `CREATE TABLE "event" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "sequence" bigserial NOT NULL,
    "key" text NOT NULL,
    "body" bytea NOT NULL,
    "emitted_at" timestamptz NOT NULL,
    "trace_id" text NOT NULL,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT "PK_30c2f3bbaf6d34a55f8ae6e4614" PRIMARY KEY ("id"),
    CONSTRAINT "FK_035c9a57e7f1391a44b79b6c015" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id")
  )`,
  `CREATE TABLE "webhook" (
    "id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "url" text NOT NULL,
    "subscribed_event_keys" text array NOT NULL,
    "enabled" boolean NOT NULL,
    "secret" text,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    "updated_at" timestamptz NOT NULL DEFAULT now(),
    "deleted_at" timestamptz,
    CONSTRAINT "PK_e6765510c2d078db49632b59020" PRIMARY KEY ("id"),
    CONSTRAINT "FK_988d8b78200993e87305cf419c8" FOREIGN KEY ("organisation_id") REFERENCES "organisation" ("id")
  )`,
  `CREATE INDEX "webhook_organisation_idx" ON "webhook" ("organisation_id", "created_at", "id")
    WHERE deleted_at IS NULL`,
  `CREATE TABLE "delivery" (
    "id" uuid NOT NULL,
    "event_id" uuid NOT NULL,
    "webhook_id" uuid NOT NULL,
    "organisation_id" text NOT NULL,
    "state" text NOT NULL,
    "attempts" integer NOT NULL DEFAULT 0,
    "claims" integer NOT NULL DEFAULT 0,
    "next_attempt_at" timestamptz,
    "owner" uuid,
    "lease_until" timestamptz,
    "sweep_at" timestamptz,
    "created_at" timestamptz NOT NULL DEFAULT now(),
    "started_at" timestamptz,
    "completed_at" timestamptz,
    CONSTRAINT "delivery_state_check"
      CHECK ("state" IN ('pending', 'in_progress', 'waiting', 'completed', 'failed', 'stopped')),
    CONSTRAINT "PK_ffad7bf84e68716cd9af89003b0" PRIMARY KEY ("id"),
    CONSTRAINT "FK_7284fd7d496949e5ca68880d751" FOREIGN KEY ("event_id") REFERENCES "event" ("id"),
    CONSTRAINT "FK_498828e0ce39ad45b5f9dcbf56b" FOREIGN KEY ("webhook_id") REFERENCES "webhook" ("id")
  )`,
  `CREATE INDEX "delivery_sweep_idx" ON "delivery" ("sweep_at") WHERE sweep_at IS NOT NULL`,
  `CREATE INDEX "delivery_webhook_idx" ON "delivery" ("webhook_id", "created_at", "id")`,
  `CREATE INDEX "delivery_event_idx" ON "delivery" ("event_id")`,
  `CREATE TABLE "attempt" (
    "delivery_id" uuid NOT NULL,
    "number" integer NOT NULL,
    "trigger" text NOT NULL,
    "url" text NOT NULL,
    "started_at" timestamptz NOT NULL,
    "duration_ms" integer NOT NULL,
    "outcome" text NOT NULL,
    "failure_code" text,
    "status_code" integer,
    "error" text,
    "response_headers" jsonb,
    "response_body" text,
    "response_truncated" boolean NOT NULL DEFAULT false,
    CONSTRAINT "attempt_outcome_check" CHECK ("outcome" IN ('succeeded', 'failed')),
    CONSTRAINT "PK_c64a618b500d49b8c2935696d6c" PRIMARY KEY ("delivery_id", "number"),
    CONSTRAINT "FK_29d1d75ef343dd2d2c3ce9a17ea" FOREIGN KEY ("delivery_id")
      REFERENCES "delivery" ("id") ON DELETE CASCADE
  )`,
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
]
