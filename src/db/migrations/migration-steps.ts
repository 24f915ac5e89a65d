import type { MigrationInterface, QueryRunner } from 'typeorm'
import { setTimeout as delay } from 'node:timers/promises'

type Migration = new () => MigrationInterface & { readonly name: string }

/** Makes a migration that applies these statements, each way within one transaction. */
export function createMigration(name: string, up: readonly string[], down: readonly string[]): Migration {
  return class implements MigrationInterface {
    readonly name = name
    up(runner: QueryRunner): Promise<void> {
      return applyStatements(runner, up)
    }
    down(runner: QueryRunner): Promise<void> {
      return applyStatements(runner, down)
    }
  }
}

/** Makes a migration that creates these indexes while Posthorn runs. TypeORM reverts within a transaction, where nothing is concurrent. */
export function createIndexMigration(
  name: string,
  indexes: readonly (readonly [name: string, on: string])[],
): Migration {
  return class implements MigrationInterface {
    readonly name = name
    readonly transaction = false
    async up(runner: QueryRunner): Promise<void> {
      for (const [index, on] of indexes) await createIndexConcurrently(runner, index, on)
    }
    async down(runner: QueryRunner): Promise<void> {
      for (const [index] of indexes) await runner.query(`DROP INDEX IF EXISTS "${index}"`)
    }
  }
}

/**
 * Applies the statements of a migration within its transaction. What waits for a table's lock has all later traffic of
 * the table wait behind it: a statement gives up after two seconds, and `posthorn migrate` tries the migration again.
 * The limit is above PostgreSQL's `deadlock_timeout` (one second), after which an autovacuum gives way.
 */
export async function applyStatements(runner: QueryRunner, statements: readonly string[]): Promise<void> {
  await runner.query(`SET LOCAL lock_timeout = '2s'`)
  for (const statement of statements) await runner.query(statement)
}

type FoundIndex = { isValid: boolean; isBeingBuilt: boolean }

const BUILD_CHECK_INTERVAL_MS = 1_000
/** As long as one statement of a migration may take. */
const BUILD_TIMEOUT_MS = 3_600_000

/**
 * Creates an index while its table is read and written; `on` follows `ON`, as in `"event" ("id")`. Leaves a valid one as
 * it is, drops one that an interruption left invalid, and waits for one that another session is building.
 * Each statement commits by itself.
 *
 * @throws Error when another session still builds it after an hour
 */
async function createIndexConcurrently(runner: QueryRunner, name: string, on: string): Promise<void> {
  const found = await findBuiltIndex(runner, name)
  if (found?.isValid === true) return
  if (found !== null) await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS "${name}"`)
  // It waits for older transactions as long as they last, and no traffic waits for it.
  await runner.query(`-- squawk-ignore require-lock-timeout
CREATE INDEX CONCURRENTLY IF NOT EXISTS "${name}" ON ${on}`)
}

/**
 * Returns null where there is none. PostgreSQL ends the progress of a build shortly before it commits that the index is
 * valid: one was left invalid only when two looks in a row say so.
 */
async function findBuiltIndex(runner: QueryRunner, name: string): Promise<FoundIndex | null> {
  const deadlineMs = performance.now() + BUILD_TIMEOUT_MS
  let looksWithoutBuild = 0
  for (;;) {
    const [found = null] = (await runner.query(
      `SELECT i.indisvalid AS "isValid",
              EXISTS (SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid) AS "isBeingBuilt"
         FROM pg_index i WHERE i.indexrelid = to_regclass('"${name}"')`,
    )) as FoundIndex[]
    if (found === null || found.isValid) return found
    looksWithoutBuild = found.isBeingBuilt ? 0 : looksWithoutBuild + 1
    if (looksWithoutBuild === 2) return found
    if (performance.now() > deadlineMs) throw new Error(`another session is still building the index ${name}`)
    await delay(BUILD_CHECK_INTERVAL_MS)
  }
}
