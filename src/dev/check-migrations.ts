import { mkdtempSync, chmodSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DataSource, QueryRunner } from 'typeorm'
import { createDataSource } from '../db/connection/data-source.ts'
import { MIGRATION_STATEMENT_TIMEOUT_MS } from '../db/connection/session-limits.ts'
import { defaultCacheDir } from './provision.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { lintMigrations, type MigrationSql } from './lint-migrations.ts'

/**
 * `npm run check:migrations`: applies every migration to an empty database, asks what the entities still miss, and lints
 * the SQL of all but the first: those are applied while tables are full and in use.
 */
const folder = mkdtempSync(join(tmpdir(), 'posthorn-check-'))
// PostgreSQL does not run as root: its user has to get in.
chmodSync(folder, 0o755)
const postgres = await startEmbeddedPostgres({
  dataDir: join(folder, 'postgres'),
  logFile: join(folder, 'postgres.log'),
  flags: ['-c', 'fsync=off'],
  print: () => undefined,
})
const dataSource = createDataSource({
  url: postgres.adminUrl,
  poolSize: 2,
  statementTimeoutMs: MIGRATION_STATEMENT_TIMEOUT_MS,
})
try {
  await dataSource.initialize()
  const recorded = recordStatements(dataSource)
  await dataSource.runMigrations()
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log()
  report(
    'Migrations and entities agree.',
    'The migrations lack what the entities have:',
    upQueries.map(({ query }) => query),
  )
  const findings = await lintMigrations(recorded.slice(1), defaultCacheDir(process.env))
  report('Migrations are safe while Posthorn runs.', 'Migrations that are not safe on full tables:', findings)
} finally {
  await dataSource.destroy()
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** Fills the list it returns as the migrations are applied. */
function recordStatements({ migrations }: DataSource): MigrationSql[] {
  return migrations.map((migration) => {
    const statements: string[] = []
    const up = migration.up.bind(migration)
    migration.up = (runner) => up(recording(runner, statements))
    return { name: migration.name ?? '', statements, isInTransaction: migration.transaction !== false }
  })
}

function recording(runner: QueryRunner, statements: string[]): QueryRunner {
  const query = (statement: string, parameters?: unknown[]): Promise<unknown> => {
    statements.push(statement)
    return runner.query(statement, parameters as never)
  }
  return new Proxy(runner, {
    get: (target, key) => (key === 'query' ? query : (Reflect.get(target, key) as unknown)),
  })
}

function report(fine: string, problem: string, lines: string[]): void {
  if (lines.length === 0) {
    process.stdout.write(`${fine}\n`)
    return
  }
  process.stderr.write(`${problem}\n${lines.join('\n')}\n`)
  process.exitCode = 1
}
