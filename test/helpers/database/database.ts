import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { DataSource, QueryRunner } from 'typeorm'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { testServers } from '../runner/servers.ts'
import { expect } from 'chai'
import { eventually } from '../eventually.ts'

export type TestDatabase = { url: string; dataSource: DataSource; drop(): Promise<void> }

/** Some tests fill tables with hundreds of thousands of rows. */
const FILLING_TIMEOUT_MS = 120_000

/** A database of one's own, migrated and empty unless another template is named, and a pool on it. */
export async function createTestDatabase(
  templateDatabase = testServers().templateDatabase,
): Promise<TestDatabase> {
  const { adminUrl } = testServers()
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await asAdmin(`CREATE DATABASE ${name} TEMPLATE ${templateDatabase} STRATEGY file_copy`)
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

/** Holds the clock of the delivery protocol in this database at one instant. */
export async function holdClock(dataSource: DataSource, at: Date): Promise<void> {
  await dataSource.query(
    `CREATE OR REPLACE FUNCTION delivery_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
       AS $$ SELECT timestamptz '${at.toISOString()}' $$`,
  )
}

/** Begins a transaction that may be idle for as long as the test takes: of Posthorn's own one is ended after ten seconds. */
export async function openTransaction(dataSource: DataSource): Promise<QueryRunner> {
  const runner = dataSource.createQueryRunner()
  await runner.startTransaction()
  await runner.query('SET LOCAL idle_in_transaction_session_timeout = 0')
  return runner
}

/** Waits until so many connections to this database wait for a lock: of a row, a table or a webhook. */
export async function untilWaitingForLock(dataSource: DataSource, connections = 1): Promise<void> {
  await eventually(async () => {
    const [waiting] = await dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    expect(waiting!.count).to.be.at.least(connections)
  })
}

/** The data source, with each statement and the number of its parameters noted in `statements`. */
export function recording(dataSource: DataSource, statements: string[]): DataSource {
  const query = (statement: string, parameters: unknown[] = []): Promise<unknown> => {
    statements.push(`${statement} / ${parameters.length}`)
    return dataSource.query(statement, parameters)
  }
  return Object.create(dataSource, { query: { value: query } }) as DataSource
}

/** A database for the `describe` it is called in: there before the first of its hooks, dropped after the last. */
export function useDatabase(): TestDatabase {
  const database = {} as TestDatabase
  before(async function () {
    Object.assign(database, await createTestDatabase())
    // Hooks run in the order in which they are made: one that is made now comes after those that need the database.
    this.test?.parent?.afterAll(() => database.drop())
  })
  return database
}

/** Returns all rows of each table as text, with what is stored as bytes decoded. */
export async function textsOfTables(dataSource: DataSource): Promise<Map<string, string>> {
  const tables = await dataSource.query<{ name: string }[]>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  )
  const texts = new Map<string, string>()
  for (const { name } of tables) {
    const found = await dataSource.query<{ row: object }[]>(`SELECT to_jsonb(t) AS row FROM "${name}" t`)
    texts.set(name, found.map(({ row }) => readable(row)).join('\n'))
  }
  return texts
}

function readable(row: object): string {
  const text = JSON.stringify(row)
  const bytes = [...text.matchAll(/\\\\x([0-9a-f]+)/g)].map(([, hex = '']) =>
    Buffer.from(hex, 'hex').toString(),
  )
  return [text, ...bytes].join('\n')
}
