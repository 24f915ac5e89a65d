import type { DataSource } from 'typeorm'
import { sql, type Db } from '../connection/db.ts'
import { setTimeout as delay } from 'node:timers/promises'

/** The server as one session sees it: settings of the role and of the database count. */
export type ServerState = {
  version: string
  /** The major release, such as 18. */
  release: number
  role: string
  isStandby: boolean
  isReadOnly: boolean
  fsync: string
  fullPageWrites: string
  synchronousCommit: string
}

export function readServerState(db: Db): Promise<ServerState> {
  return sql(
    `SELECT current_setting('server_version') AS version,
            current_setting('server_version_num')::int / 10000 AS release,
            current_user::text AS role,
            pg_is_in_recovery() AS "isStandby",
            current_setting('default_transaction_read_only') = 'on' AS "isReadOnly",
            current_setting('fsync') AS fsync,
            current_setting('full_page_writes') AS "fullPageWrites",
            current_setting('synchronous_commit') AS "synchronousCommit"`,
  ).one(db)
}

/** Returns the names of the migrations that were applied; none where no migration ever ran. Writes nothing. */
export async function listAppliedMigrations(db: Db): Promise<string[]> {
  const table = sql(`SELECT to_regclass('migrations') IS NOT NULL AS "isThere"`)
  if (!(await table.one<{ isThere: boolean }>(db)).isThere) return []
  const applied = await sql(`SELECT name FROM migrations ORDER BY id`).rows<{ name: string }>(db)
  return applied.map(({ name }) => name)
}

/** Returns the rights that the role lacks on these tables, of those that a process needs; a table that is missing has none. */
export async function listMissingRights(
  db: Db,
  tables: readonly string[],
): Promise<{ table: string; rights: string[] }[]> {
  return sql(
    `SELECT t.name AS "table", array_agg(r.name ORDER BY r.name) AS rights
       FROM unnest(:tables::text[]) AS t (name)
      CROSS JOIN unnest(ARRAY['DELETE', 'INSERT', 'SELECT', 'UPDATE']) AS r (name)
      WHERE to_regclass(quote_ident(t.name)) IS NOT NULL
        AND NOT has_table_privilege(to_regclass(quote_ident(t.name)), r.name)
      GROUP BY t.name ORDER BY t.name`,
    { tables },
  ).rows(db)
}

/**
 * Returns whether transactions of one connection get different sessions of the server, as behind a pooler in transaction
 * mode: the session of a connection at rest is then given to another connection that begins a transaction. Needs two
 * connections of the pool.
 */
export async function hasSharedSessions(dataSource: DataSource): Promise<boolean> {
  const [one, other] = [dataSource.createQueryRunner(), dataSource.createQueryRunner()]
  try {
    const before = await readSessionId(one.manager)
    await other.startTransaction()
    const ofOther = await readSessionId(other.manager)
    const after = await readSessionId(one.manager)
    return before === ofOther || before !== after
  } finally {
    if (other.isTransactionActive) await other.rollbackTransaction()
    await Promise.all([one.release(), other.release()])
  }
}

/** Returns whether sessions have time limits in the server: a pooler may drop those that a connection starts with. */
export async function hasSessionLimits(db: Db): Promise<boolean> {
  const limits = sql(
    `SELECT current_setting('statement_timeout') <> '0' AND current_setting('lock_timeout') <> '0' AS "areSet"`,
  )
  return (await limits.one<{ areSet: boolean }>(db)).areSet
}

async function readSessionId(db: Db): Promise<number> {
  return (await sql(`SELECT pg_backend_pid() AS id`).one<{ id: number }>(db)).id
}

const PROBE_TIMEOUT_MS = 2_000

/**
 * Returns whether the database answers through the pool within PROBE_TIMEOUT_MS and takes writes: a standby and a
 * database set to read-only do not. Never rejects.
 */
export function isDatabaseUp(dataSource: DataSource): Promise<boolean> {
  const answered = dataSource
    .query<{ readOnly: string }[]>(`SELECT current_setting('transaction_read_only') AS "readOnly"`)
    .then(
      ([row]) => row?.readOnly === 'off',
      () => false,
    )
  return Promise.race([answered, delay(PROBE_TIMEOUT_MS, false, { ref: false })])
}
