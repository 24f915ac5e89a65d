import { createIndexMigration, createMigration } from './migration-steps.ts'

/** Checks the rows from before for the constraints of migrations 3 and 4, which reads and writes do not wait for. They may stay so. */
export const ValidateConstraints6 = createMigration(
  'ValidateConstraints1764500000000',
  [
    `ALTER TABLE "session" VALIDATE CONSTRAINT "FK_7fb1b2573248384a99cdbd4cc1c"`,
    `ALTER TABLE "session" VALIDATE CONSTRAINT "session_key_or_member_check"`,
    `ALTER TABLE "retry_job" VALIDATE CONSTRAINT "retry_job_mode_check"`,
  ],
  [],
)

/** Creates the indexes of portal sessions, test deliveries and traces. */
export const OnlineIndexes7 = createIndexMigration('OnlineIndexes1764600000000', [
  ['session_member_idx', `"session" ("organisation_id", "member_id", "created_at")`],
  // Stopped deliveries of test events are in no other partial index.
  ['delivery_test_idx', `"delivery" ("webhook_id", "id") WHERE is_test`],
  ['event_trace_idx', `"event" ("organisation_id", "trace_id", "sequence")`],
])

/** Adds to deliveries since when their workflow is paused in Temporal. */
export const PausedWorkflows8 = createMigration(
  'PausedWorkflows1764700000000',
  [`ALTER TABLE "delivery" ADD COLUMN "paused_since" timestamptz`],
  [`ALTER TABLE "delivery" DROP COLUMN "paused_since"`],
)

/** Adds the session and the API key that made a push subscription. Those from before have neither. */
export const PushOwners9 = createMigration(
  'PushOwners1764800000000',
  [
    `ALTER TABLE "push_subscription"
    ADD COLUMN "session_hash" bytea,
    ADD COLUMN "api_key_id" uuid,
    ADD COLUMN "key_hash" bytea`,
  ],
  [
    `ALTER TABLE "push_subscription"
    DROP COLUMN "session_hash",
    DROP COLUMN "api_key_id",
    DROP COLUMN "key_hash"`,
  ],
)
