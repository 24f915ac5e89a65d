import { createHash } from 'node:crypto'
import type pg from 'pg'
import type { DataSource, EntityManager, QueryRunner } from 'typeorm'
import { loadSql } from '../../src/deliveries/protocol/load-sql.ts'
import { createTestDatabase } from '../helpers/database/database.ts'
import { BrokenRule } from './explore.ts'
import {
  normalise,
  NOW,
  ORGANISATION,
  TABLES,
  toDatabaseRow,
  toImageRow,
  type Image,
  type Row,
  type TableName,
} from './image.ts'

/** What the product is given in the place of its pool: everything runs in the transaction of the step. */
type Work<Result> = (db: DataSource) => Promise<Result>

export type ExplorerDatabase = {
  /**
   * Runs one transaction of the product on the given rows. `name` names it, with its parameters: what ran before on
   * equal rows is remembered, since every instant counts from the virtual now.
   */
  run<Result>(image: Image, name: string, work: Work<Result>): Promise<{ image: Image; result: Result }>
  /** Transactions that PostgreSQL ran. */
  executed(): number
  close(): Promise<void>
}

/** Changes the text of a statement on its way to PostgreSQL. */
export type Rewrite = (text: string) => string

const PARAMETER = /(?<!:):([A-Za-z]\w*)/g

/** Returns the text of a statement of the protocol as PostgreSQL gets it, after a change to what its file says. */
export function sentText(file: string, change: (text: string) => string = (text) => text): string {
  const { text } = loadSql(file)
  const names = [...new Set([...text.matchAll(PARAMETER)].map(([, name]) => name!))]
  return change(text).replaceAll(PARAMETER, (_, name: string) => `$${names.indexOf(name) + 1}`)
}

const TAKES_LOCK = /pg_(try_)?advisory_xact_lock\(/
const CHANGES_INCIDENT = /^\s*(INSERT INTO|UPDATE) incident\b/

/** Statements of the protocol whose callers hold the lock of the webhook. */
const UNDER_LOCK = new Set(
  ['record-success', 'record-failure', 'request-retry', 'stop', 'resume', 'discard'].map((file) =>
    sentText(file),
  ),
)

/**
 * Throws where a transaction changes an incident, or runs a statement that needs the lock of the webhook, before it has
 * the lock. `sent`: its statements in order, as PostgreSQL got them; `given`: as the product gave them.
 */
function requireLock(sent: readonly string[], given: readonly string[]): void {
  const isLocked = (place: number): boolean => sent.slice(0, place).some((text) => TAKES_LOCK.test(text))
  for (const [place, text] of given.entries())
    if ((UNDER_LOCK.has(text) || CHANGES_INCIDENT.test(text)) && !isLocked(place))
      throw new BrokenRule('what may change an incident is done under the lock of its webhook')
}

/** Dead rows make scans slow. */
const STEPS_PER_VACUUM = 1_000

export async function createExplorerDatabase(rewrite: Rewrite): Promise<ExplorerDatabase> {
  const database = await createTestDatabase()
  const { dataSource } = database
  await prepare(dataSource)
  const runner = dataSource.createQueryRunner()
  const client = (await runner.connect()) as pg.ClientBase
  const log = logStatements(client, rewrite)
  const instants = await findInstants(dataSource)
  const remembered = new Map<string, Promise<{ image: Image; result: unknown }>>()
  let executed = 0

  async function restore(image: Image): Promise<void> {
    const rows = TABLES.map((table) =>
      JSON.stringify(image[table].map((row) => toDatabaseRow(table, row, instants[table]))),
    )
    await client.query({ name: 'restore', text: RESTORE, values: rows })
  }

  async function read(): Promise<Image> {
    const { rows } = await client.query<Record<TableName, Row[]>>({ name: 'read', text: READ })
    const [found] = rows
    return Object.fromEntries(
      TABLES.map((table) => [table, found![table].map((row) => toImageRow(table, row, instants[table]))]),
    ) as Image
  }

  async function execute<Result>(
    image: Image,
    work: Work<Result>,
  ): Promise<{ image: Image; result: Result }> {
    if (++executed % STEPS_PER_VACUUM === 0) await client.query(`VACUUM ${TABLES.join(', ')}`)
    await runner.startTransaction()
    try {
      await restore(image)
      log.clear()
      const result = await work(poolOn(dataSource, runner))
      requireLock(log.sent, log.given)
      return { image: normalise(await read()), result }
    } finally {
      await runner.rollbackTransaction()
    }
  }

  /** An image is never changed, and many steps begin from the same one. */
  const hashes = new WeakMap<Image, string>()
  function hashOf(image: Image): string {
    const hash = hashes.get(image) ?? createHash('sha1').update(JSON.stringify(image)).digest('base64')
    hashes.set(image, hash)
    return hash
  }

  return {
    run<Result>(image: Image, name: string, work: Work<Result>) {
      const key = `${name} ${hashOf(image)}`
      const known = remembered.get(key) ?? execute(image, work)
      remembered.set(key, known)
      return known as Promise<{ image: Image; result: Result }>
    },
    executed: () => executed,
    async close() {
      await runner.release()
      await database.drop()
    },
  }
}

const RESTORE = `WITH ${TABLES.map(
  (table, index) =>
    `r${index} AS (INSERT INTO ${table} SELECT * FROM jsonb_populate_recordset(NULL::${table}, $${index + 1}::jsonb))`,
).join(', ')} SELECT 1`

const READ = `SELECT ${TABLES.map(
  (table) =>
    `(SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY to_jsonb(t)), '[]') FROM ${table} t) AS ${table}`,
).join(', ')}`

async function prepare(dataSource: DataSource): Promise<void> {
  await dataSource.query(
    `CREATE OR REPLACE FUNCTION delivery_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
         AS $$ SELECT timestamptz '${NOW}' $$`,
  )
  await dataSource.query(
    `INSERT INTO organisation (id, name, email, time_zone) VALUES ('${ORGANISATION}', 'Protocol', 'info@protocol.example', 'UTC')`,
  )
}

/** The columns with a time, of each table. */
async function findInstants(dataSource: DataSource): Promise<Record<TableName, ReadonlySet<string>>> {
  const columns = await dataSource.query<{ table: TableName; column: string }[]>(
    `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
      WHERE table_schema = current_schema() AND data_type = 'timestamp with time zone'`,
  )
  const of = (table: TableName) => columns.filter((row) => row.table === table).map(({ column }) => column)
  const found: [TableName, ReadonlySet<string>][] = TABLES.map((table) => [table, new Set(of(table))])
  return Object.fromEntries(found) as Record<TableName, ReadonlySet<string>>
}

/** Rewrites every statement that the client sends. Returns what it was given and what it sent. */
function logStatements(client: pg.ClientBase, rewrite: Rewrite) {
  const send = client.query.bind(client) as (...given: unknown[]) => unknown
  const known = new Map<string, string>()
  const log = { given: [] as string[], sent: [] as string[], clear: () => void 0 }
  log.clear = () => {
    log.given.length = log.sent.length = 0
  }
  const rewritten = (text: string): string => {
    const sent = known.get(text) ?? rewrite(text)
    known.set(text, sent)
    log.given.push(text)
    log.sent.push(sent)
    return sent
  }
  const query = (first: unknown, ...rest: unknown[]): unknown => {
    if (typeof first === 'string') return send(rewritten(first), ...rest)
    const statement = first as { text: string }
    return send({ ...statement, text: rewritten(statement.text) }, ...rest)
  }
  Object.assign(client, { query })
  return log
}

/** A data source whose every call uses the one connection, whose transaction is rolled back after the step. */
function poolOn(dataSource: DataSource, runner: QueryRunner): DataSource {
  const { manager } = runner
  const kept = Object.create(runner, { release: { value: () => Promise.resolve() } }) as QueryRunner
  return Object.create(dataSource, {
    query: { value: (text: string, values?: unknown[]) => runner.query(text, values) },
    manager: { value: manager },
    getRepository: { value: manager.getRepository.bind(manager) },
    transaction: { value: <T>(work: (inner: EntityManager) => Promise<T>) => manager.transaction(work) },
    createQueryRunner: { value: () => kept },
  }) as DataSource
}
