import type { MigrationInterface, QueryRunner } from 'typeorm'
import { setTimeout as delay } from 'node:timers/promises'

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

type FoundIndex = { isValid: boolean; isBeingBuilt: boolean }

const BUILD_CHECK_INTERVAL_MS = 1_000
/** As long as one statement of a migration may take. */
const BUILD_TIMEOUT_MS = 3_600_000

/**
 * Creates an index while its table is read and written; `on` follows `ON`, as in `"event" ("id")`. Leaves a valid one as
 * it is, drops one that an interruption left invalid, and waits for one that another session is building.
 * For migrations without a transaction: each statement commits by itself.
 *
 * @throws Error when another session still builds it after an hour
 */
export async function createIndexConcurrently(runner: QueryRunner, name: string, on: string): Promise<void> {
  const found = await findBuiltIndex(runner, name)
  if (found?.isValid === true) return
  if (found !== null) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS "${name}"`)
  // It waits for older transactions as long as they last, and no traffic waits for it.
  await runner.query(`-- squawk-ignore require-lock-timeout
CREATE INDEX CONCURRENTLY IF NOT EXISTS "${name}" ON ${on}`)
}

/** Returns null where there is none. */
async function findBuiltIndex(runner: QueryRunner, name: string): Promise<FoundIndex | null> {
  const deadlineMs = performance.now() + BUILD_TIMEOUT_MS
  for (;;) {
    const [found = null] = (await runner.query(
      `SELECT i.indisvalid AS "isValid",
              EXISTS (SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid) AS "isBeingBuilt"
         FROM pg_index i WHERE i.indexrelid = to_regclass('"${name}"')`,
    )) as FoundIndex[]
    if (found === null || !found.isBeingBuilt) return found
    if (performance.now() > deadlineMs) throw new Error(`another session is still building the index ${name}`)
    await delay(BUILD_CHECK_INTERVAL_MS)
  }
}
