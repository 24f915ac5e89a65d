import type { MigrationInterface, QueryRunner } from 'typeorm'

/** Adds one-use links into the developer area, and the sessions of a member that they open. */
export class PortalLinks3 implements MigrationInterface {
  readonly name = 'PortalLinks1764200000000'

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of UP) await runner.query(statement)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of DOWN) await runner.query(statement)
  }
}

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
  `ALTER TABLE "session"
    ALTER COLUMN "api_key_id" DROP NOT NULL,
    ALTER COLUMN "key_hash" DROP NOT NULL,
    ADD COLUMN "organisation_id" text,
    ADD COLUMN "member_id" text,
    ADD CONSTRAINT "FK_7fb1b2573248384a99cdbd4cc1c" FOREIGN KEY ("organisation_id", "member_id")
      REFERENCES "member" ("organisation_id", "id") ON DELETE CASCADE,
    ADD CONSTRAINT "session_key_or_member_check" CHECK (
      ("api_key_id" IS NOT NULL AND "key_hash" IS NOT NULL) <>
      ("organisation_id" IS NOT NULL AND "member_id" IS NOT NULL))`,
  `CREATE INDEX "session_member_idx" ON "session" ("organisation_id", "member_id", "created_at")`,
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
