import { createMigration } from './migration-steps.ts'

const STOP_REASONS = `'webhook_disabled', 'webhook_deleted', 'unsubscribed', 'discarded', 'test_failed'`
const BY_ERASURE = `"stop_reason" = 'payload_erased'`

// The constraints hold for all rows from before, so none is read. PostgreSQL checks every row that is written.
const UP = [
  // No event is without a payload before every process is of this version and one is erased.
  `ALTER TABLE "event"
    -- squawk-ignore ban-drop-not-null
    ALTER COLUMN "body" DROP NOT NULL,
    ADD COLUMN "erased_at" timestamptz,
    ADD COLUMN "erased_by" text,
    ADD CONSTRAINT "event_erased_check"
      CHECK (("body" IS NULL) = ("erased_at" IS NOT NULL) AND ("erased_at" IS NULL) = ("erased_by" IS NULL)) NOT VALID`,
  `ALTER TABLE "delivery"
    ADD COLUMN "is_erased" boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT "delivery_stop_reason_check",
    ADD CONSTRAINT "delivery_stop_reason_check"
      CHECK ("stop_reason" IN (${STOP_REASONS}, 'payload_erased')) NOT VALID`,
  // Why a delivery is not attempted: its payload is erased, or its webhook does not take it.
  `CREATE FUNCTION "stop_reason_of"("deleted_at" timestamptz, "enabled" boolean, "keys" text[], "key" text,
                                    "is_erased" boolean)
     RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
     AS $$ SELECT CASE WHEN "is_erased" THEN 'payload_erased'
                       ELSE stop_reason_of("deleted_at", "enabled", "keys", "key") END $$`,
]

const DOWN = [
  `DROP FUNCTION "stop_reason_of"(timestamptz, boolean, text[], text, boolean)`,
  `UPDATE "delivery" SET "stop_reason" = 'discarded' WHERE ${BY_ERASURE}`,
  `ALTER TABLE "delivery"
    DROP CONSTRAINT "delivery_stop_reason_check",
    ADD CONSTRAINT "delivery_stop_reason_check" CHECK ("stop_reason" IN (${STOP_REASONS})),
    DROP COLUMN "is_erased"`,
  // What is erased stays so.
  `ALTER TABLE "event" DROP CONSTRAINT "event_erased_check"`,
  `UPDATE "event" SET "body" = '{}' WHERE "body" IS NULL`,
  `ALTER TABLE "event" ALTER COLUMN "body" SET NOT NULL, DROP COLUMN "erased_at", DROP COLUMN "erased_by"`,
]

/** Lets the payload of an event be erased. */
export const PayloadErasure13 = createMigration('PayloadErasure1765200000000', UP, DOWN)
