import { createIndexMigration, createMigration } from './migration-steps.ts'

const UP = [
  // Both tables are small: reading them for the constraints takes milliseconds.
  `ALTER TABLE "webhook"
    ADD COLUMN "held_at" timestamptz,
    ADD COLUMN "hold_reason" text,
    ADD COLUMN "enabled_before_hold" boolean,
    -- squawk-ignore constraint-missing-not-valid
    ADD CONSTRAINT "webhook_hold_check" CHECK (
      num_nonnulls("held_at", "hold_reason", "enabled_before_hold") IN (0, 3) AND ("held_at" IS NULL OR NOT "enabled"))`,
  `ALTER TABLE "session"
    ADD COLUMN "operator" text,
    DROP CONSTRAINT "session_key_or_member_check",
    -- squawk-ignore constraint-missing-not-valid
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

/** Adds the operator's hold on a webhook, and the sessions of operator keys. */
export const OperatorView14 = createMigration('OperatorView1765300000000', UP, DOWN)

/** Creates the indexes of the webhooks that operators list. */
export const OperatorIndexes14 = createIndexMigration('OperatorIndexes1765300000001', [
  ['webhook_disabled_idx', `"webhook" ("id") WHERE deleted_at IS NULL AND NOT enabled`],
  ['delivery_paused_idx', `"delivery" ("webhook_id") WHERE paused_since IS NOT NULL`],
])
