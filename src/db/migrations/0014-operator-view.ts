import type { MigrationInterface, QueryRunner } from 'typeorm'
import { createIndexConcurrently } from './0007-online-indexes.ts'
import { applyStatements } from './apply-statements.ts'

/** Adds the operator's hold on a webhook, and the sessions of operator keys. */
export class OperatorView14 implements MigrationInterface {
  readonly name = 'OperatorView1765300000000'

  async up(runner: QueryRunner): Promise<void> {
    await applyStatements(runner, UP)
  }

  async down(runner: QueryRunner): Promise<void> {
    await applyStatements(runner, DOWN)
  }
}

/** Creates the indexes of the webhooks that operators list, while Posthorn runs. */
export class OperatorIndexes14 implements MigrationInterface {
  readonly name = 'OperatorIndexes1765300000001'
  readonly transaction = false

  async up(runner: QueryRunner): Promise<void> {
    for (const [name, on] of INDEXES) await createIndexConcurrently(runner, name, on)
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [name] of INDEXES) await runner.query(`DROP INDEX IF EXISTS "${name}"`)
  }
}

const UP = [
  // Both tables are small: reading them for the constraints takes milliseconds.
  `-- squawk-ignore constraint-missing-not-valid
ALTER TABLE "webhook"
    ADD COLUMN "held_at" timestamptz,
    ADD COLUMN "hold_reason" text,
    ADD COLUMN "enabled_before_hold" boolean,
    ADD CONSTRAINT "webhook_hold_check" CHECK (
      num_nonnulls("held_at", "hold_reason", "enabled_before_hold") IN (0, 3) AND ("held_at" IS NULL OR NOT "enabled"))`,
  `-- squawk-ignore constraint-missing-not-valid
ALTER TABLE "session"
    ADD COLUMN "operator" text,
    DROP CONSTRAINT "session_key_or_member_check",
    ADD CONSTRAINT "session_owner_check" CHECK (
      num_nonnulls("api_key_id", "member_id", "operator") = 1 AND ("organisation_id" IS NULL) = ("member_id" IS NULL)
      AND ("key_hash" IS NULL) = ("member_id" IS NOT NULL))`,
]

const DOWN = [
  `DELETE FROM "session" WHERE "operator" IS NOT NULL`,
  `ALTER TABLE "session"
    DROP CONSTRAINT "session_owner_check",
    DROP COLUMN "operator",
    ADD CONSTRAINT "session_key_or_member_check" CHECK (
      ("api_key_id" IS NOT NULL AND "key_hash" IS NOT NULL) <>
      ("organisation_id" IS NOT NULL AND "member_id" IS NOT NULL))`,
  `ALTER TABLE "webhook"
    DROP COLUMN "held_at",
    DROP COLUMN "hold_reason",
    DROP COLUMN "enabled_before_hold"`,
]

const INDEXES = [
  ['webhook_disabled_idx', `"webhook" ("id") WHERE deleted_at IS NULL AND NOT enabled`],
  ['delivery_paused_idx', `"delivery" ("webhook_id") WHERE paused_since IS NOT NULL`],
] as const
