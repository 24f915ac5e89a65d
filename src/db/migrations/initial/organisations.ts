/**
 * Creates organisations, members, and what belongs to members: API keys, sessions, push subscriptions, idempotency
 * keys.
 */
export const CREATE_ORGANISATIONS = [
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
