import { createMigration } from './migration-steps.ts'

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
