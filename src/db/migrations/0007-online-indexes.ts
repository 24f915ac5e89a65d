import { createIndexMigration } from './migration-steps.ts'

/** Creates the indexes of portal sessions, test deliveries and traces. */
export const OnlineIndexes7 = createIndexMigration('OnlineIndexes1764600000000', [
  ['session_member_idx', `"session" ("organisation_id", "member_id", "created_at")`],
  // Stopped deliveries of test events are in no other partial index.
  ['delivery_test_idx', `"delivery" ("webhook_id", "id") WHERE is_test`],
  ['event_trace_idx', `"event" ("organisation_id", "trace_id", "sequence")`],
])
