import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { DataSource } from 'typeorm'
import type { Row } from '../scenario.ts'
import { rounded } from './distribution.ts'

type Statement = { sql: string; calls: number; ms: number }
type Table = { name: string; bytes: number; inserted: number; updated: number; deleted: number }

/** What has been asked of a database so far. `walBytes` is of the whole server, which serves nothing else. */
export type DatabaseUsage = {
  transactions: number
  walBytes: number
  statements: Statement[]
  tables: Table[]
}

/** A backend that idles hands in its counts within ten seconds. */
const COUNTS_HANDED_IN_MS = 11_000

/** Reads the server's own statistics, after everybody has had time to hand theirs in. */
export async function databaseUsage(databaseUrl: string): Promise<DatabaseUsage> {
  await delay(COUNTS_HANDED_IN_MS)
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows: counters } = await client.query<{ transactions: number; walBytes: number }>(
      `SELECT xact_commit::float8 AS transactions, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS "walBytes"
         FROM pg_stat_database WHERE datname = current_database()`,
    )
    const { rows: tables } = await client.query<Table>(
      `SELECT relname AS name, pg_total_relation_size(relid)::float8 AS bytes, n_tup_ins::float8 AS inserted,
              n_tup_upd::float8 AS updated, n_tup_del::float8 AS deleted FROM pg_stat_user_tables`,
    )
    return { ...counters[0]!, tables, statements: await readStatements(databaseUrl) }
  } finally {
    await client.end()
  }
}

export async function databaseMb(dataSource: DataSource): Promise<number> {
  const [found] = await dataSource.query<[{ megabytes: number }]>(
    `SELECT round(pg_database_size(current_database()) / 1e6)::int AS megabytes`,
  )
  return found.megabytes
}

/** Row versions that were written to the table of deliveries so far. */
export async function deliveryUpdates(databaseUrl: string): Promise<number> {
  const { tables } = await databaseUsage(databaseUrl)
  return tables.find(({ name }) => name === 'delivery')!.updated
}

/** The extension is in the administrator's database only, and counts for all. */
async function readStatements(databaseUrl: string): Promise<Statement[]> {
  const url = new URL(databaseUrl)
  const name = url.pathname.slice(1)
  const client = new pg.Client({ connectionString: Object.assign(url, { pathname: '/postgres' }).href })
  await client.connect()
  try {
    const { rows } = await client.query<Statement>(
      `SELECT regexp_replace(query, '\\s+', ' ', 'g') AS sql, sum(calls)::float8 AS calls,
              sum(total_exec_time)::float8 AS ms
         FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid WHERE d.datname = $1 GROUP BY sql`,
      [name],
    )
    return rows
  } finally {
    await client.end()
  }
}

/** What was asked between two readings, for each of `deliveries`. */
export function usagePerDelivery(
  before: DatabaseUsage,
  after: DatabaseUsage,
  deliveries: number,
): { total: Row; tables: Row[]; statements: Row[] } {
  const each = (amount: number): number => rounded(amount / deliveries)
  const tables = after.tables.map((now) => {
    const then = before.tables.find(({ name }) => name === now.name)
    const { bytes = 0, inserted = 0, updated = 0, deleted = 0 } = then ?? {}
    return {
      table: now.name,
      bytes: each(now.bytes - bytes),
      inserted: each(now.inserted - inserted),
      updated: each(now.updated - updated),
      deleted: each(now.deleted - deleted),
    }
  })
  const statements = after.statements.map((now) => {
    const then = before.statements.find(({ sql }) => sql === now.sql)
    return { calls: each(now.calls - (then?.calls ?? 0)), ms: each(now.ms - (then?.ms ?? 0)), sql: now.sql }
  })
  const sum = (values: number[]): number => rounded(values.reduce((total, value) => total + value, 0))
  return {
    total: {
      statements: sum(statements.map(({ calls }) => calls)),
      transactions: each(after.transactions - before.transactions),
      walBytes: each(after.walBytes - before.walBytes),
      tableBytes: sum(tables.map(({ bytes }) => bytes)),
      rowsInserted: sum(tables.map(({ inserted }) => inserted)),
      rowsUpdated: sum(tables.map(({ updated }) => updated)),
    },
    tables: tables.filter(({ inserted, updated, deleted }) => inserted + updated + deleted > 0),
    statements: statements.filter(({ calls }) => calls > 0).sort((a, b) => b.ms - a.ms),
  }
}
