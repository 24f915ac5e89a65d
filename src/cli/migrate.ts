import { createDataSource } from '../db/data-source.ts'

/** Applies what is missing and returns the names of the migrations applied. */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const dataSource = createDataSource({ url: databaseUrl, poolSize: 2 })
  await dataSource.initialize()
  try {
    const applied = await dataSource.runMigrations()
    return applied.map((migration) => migration.name)
  } finally {
    await dataSource.destroy()
  }
}
