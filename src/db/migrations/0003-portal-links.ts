import { createMigration } from './migration-steps.ts'

const UP = [
  `CREATE TABLE "portal_link" (
    "hash" bytea NOT NULL,
    "organisation_id" text NOT NULL,
    "member_id" text NOT NULL,
    "path" text NOT NULL,
    "expires_at" timestamptz NOT NULL,
    CONSTRAINT "PK_602b8dbde3e696a49027a52d2af" PRIMARY KEY ("hash"),
    CONSTRAINT "FK_9da60a1a378facea2e0031b9bcd" FOREIGN KEY ("organisation_id", "member_id")
      REFERENCES "member" ("organisation_id", "id") ON DELETE CASCADE
  )`,
  `CREATE INDEX "portal_link_member_idx" ON "portal_link" ("organisation_id", "member_id")`,
  // The version before reads sessions by their API key only.
  `ALTER TABLE "session"
    -- squawk-ignore ban-drop-not-null
    ALTER COLUMN "api_key_id" DROP NOT NULL,
    -- squawk-ignore ban-drop-not-null
    ALTER COLUMN "key_hash" DROP NOT NULL,
    ADD COLUMN "organisation_id" text,
    ADD COLUMN "member_id" text,
    ADD CONSTRAINT "FK_7fb1b2573248384a99cdbd4cc1c" FOREIGN KEY ("organisation_id", "member_id")
      REFERENCES "member" ("organisation_id", "id") ON DELETE CASCADE NOT VALID,
    ADD CONSTRAINT "session_key_or_member_check" CHECK (
      ("api_key_id" IS NOT NULL AND "key_hash" IS NOT NULL) <>
      ("organisation_id" IS NOT NULL AND "member_id" IS NOT NULL)) NOT VALID`,
]

const DOWN = [
  `DELETE FROM "session" WHERE "api_key_id" IS NULL`,
  `ALTER TABLE "session"
    DROP COLUMN "organisation_id",
    DROP COLUMN "member_id",
    ALTER COLUMN "api_key_id" SET NOT NULL,
    ALTER COLUMN "key_hash" SET NOT NULL`,
  `DROP TABLE "portal_link"`,
]

/** Adds one-use links into the developer area, and the sessions of a member that they open. */
export const PortalLinks3 = createMigration('PortalLinks1764200000000', UP, DOWN)
