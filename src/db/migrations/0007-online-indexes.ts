import type { MigrationInterface, QueryRunner } from 'typeorm'
import { createIndexConcurrently } from './create-index-concurrently.ts'

/** Creates the indexes of portal sessions, test deliveries and traces while Posthorn runs. */
export class OnlineIndexes7 implements MigrationInterface {
  readonly name = 'OnlineIndexes1764600000000'
  readonly transaction = false

  async up(runner: QueryRunner): Promise<void> {
    for (const [name, on] of INDEXES) await createIndexConcurrently(runner, name, on)
  }

  /** TypeORM reverts within a transaction, where nothing is concurrent. */
  async down(runner: QueryRunner): Promise<void> {
    for (const [name] of INDEXES) await runner.query(`DROP INDEX IF EXISTS "${name}"`)
  }
}

const INDEXES = [
  ['session_member_idx', `"session" ("organisation_id", "member_id", "created_at")`],
  // Stopped deliveries of test events are in no other partial index.
  ['delivery_test_idx', `"delivery" ("webhook_id", "id") WHERE is_test`],
  ['event_trace_idx', `"event" ("organisation_id", "trace_id", "sequence")`],
] as const
