import type { QueryRunner } from 'typeorm'

/**
 * Applies the statements of a migration within its transaction. What waits for a table's lock has all later traffic of
 * the table wait behind it: a statement gives up after two seconds, and `posthorn migrate` tries the migration again.
 * The limit is above PostgreSQL's `deadlock_timeout` (one second), after which an autovacuum gives way.
 */
export async function applyStatements(runner: QueryRunner, statements: readonly string[]): Promise<void> {
  await runner.query(`SET LOCAL lock_timeout = '2s'`)
  for (const statement of statements) await runner.query(statement)
}
