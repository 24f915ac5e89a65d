import { mkdtempSync, chmodSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDataSource } from '../db/data-source.ts'
import { MIGRATION_STATEMENT_TIMEOUT_MS } from '../db/session-limits.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'

/** `npm run check:migrations`: applies every migration to an empty database and asks what the entities still miss. */
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
  await dataSource.runMigrations()
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log()
  const missing = upQueries.map(({ query }) => query)
  if (missing.length === 0) {
    process.stdout.write('Migrations and entities agree.\n')
  } else {
    process.stderr.write(`The migrations lack what the entities have:\n${missing.join('\n')}\n`)
    process.exitCode = 1
  }
} finally {
  await dataSource.destroy()
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}
