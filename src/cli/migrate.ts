import { closeDataSource, createDataSource } from '../db/data-source.ts'
import { MIGRATION_STATEMENT_TIMEOUT_MS, type Pooler } from '../db/session-limits.ts'

/** Applies what is missing and returns the names of the migrations applied. */
export async function migrate(databaseUrl: string, pooler: Pooler = 'none'): Promise<string[]> {
  const dataSource = createDataSource({
    url: databaseUrl,
    poolSize: 2,
    pooler,
    statementTimeoutMs: MIGRATION_STATEMENT_TIMEOUT_MS,
  })
  await dataSource.initialize()
  try {
    const applied = await dataSource.runMigrations()
    return applied.map((migration) => migration.name)
  } finally {
    await closeDataSource(dataSource)
  }
}
