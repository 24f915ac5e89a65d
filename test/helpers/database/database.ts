import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { DataSource } from 'typeorm'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { testServers } from '../runner/servers.ts'

export type TestDatabase = { url: string; dataSource: DataSource; drop(): Promise<void> }

/** Some tests fill tables with hundreds of thousands of rows. */
const FILLING_TIMEOUT_MS = 120_000

/** A database of one's own, migrated and empty unless another template is named, and a pool on it. */
export async function createTestDatabase(
  templateDatabase = testServers().templateDatabase,
): Promise<TestDatabase> {
  const { adminUrl } = testServers()
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await asAdmin(`CREATE DATABASE ${name} TEMPLATE ${templateDatabase}`)
  const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href
  const dataSource = createDataSource({ url, poolSize: 20, statementTimeoutMs: FILLING_TIMEOUT_MS })
  await dataSource.initialize()
  return {
    url,
    dataSource,
    async drop() {
      await dataSource.destroy()
      await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}

async function asAdmin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: testServers().adminUrl })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
