import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import pg from 'pg'
import type { MigrationInterface } from 'typeorm'
import { migrate } from '../../../src/cli/migrate.ts'
import { OnlineIndexes7 } from '../../../src/db/migrations/0007-online-indexes.ts'
import { PausedWorkflows8 } from '../../../src/db/migrations/0008-paused-workflows.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'

const INDEX_NAMES = ['delivery_test_idx', 'event_trace_idx', 'session_member_idx']
/** How long another transaction is open while the migration runs. */
const OPEN_TRANSACTION_MS = 4_000

describe('posthorn migrate while events are published', () => {
  const database = useDatabase()
  let client: pg.Client
  let organisationId: string

  beforeEach(async () => {
    client = new pg.Client({ connectionString: database.url })
    client.on('error', () => undefined)
    await client.connect()
    ;({ organisationId } = await createMember(database.dataSource))
    await createWebhookRow(database.dataSource, { organisationId, url: 'http://127.0.0.1:9/hook' })
    await publishRow(database.dataSource, organisationId)
  })
  afterEach(() => client.end())

  /** Reverts one migration that publishing does without, and not those after it, which it needs. */
  const revert = (migration: MigrationInterface & { name: string }): Promise<void> =>
    database.dataSource.transaction(async ({ queryRunner }) => {
      await migration.down(queryRunner!)
      await queryRunner!.query('DELETE FROM migrations WHERE name = $1', [migration.name])
    })
  const revertIndexes = () => revert(new OnlineIndexes7())
  const validityOfIndexes = async (): Promise<Record<string, boolean>> => {
    const rows = await database.dataSource.query<{ name: string; isValid: boolean }[]>(
      `SELECT c.relname AS name, i.indisvalid AS "isValid" FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE c.relname = ANY($1) ORDER BY c.relname`,
      [INDEX_NAMES],
    )
    return Object.fromEntries(rows.map(({ name, isValid }) => [name, isValid]))
  }
  const ALL_VALID = Object.fromEntries(INDEX_NAMES.map((name) => [name, true]))
  /** Opens a transaction that has read and written an event and its delivery. */
  const openTransaction = async (): Promise<void> => {
    await client.query('BEGIN')
    await client.query('UPDATE event SET trace_id = trace_id')
    await client.query('UPDATE delivery SET sweep_at = sweep_at')
  }

  /** Publishes one event after the other until `isOver`; returns how long the slowest took, in ms. */
  async function publishUntil(isOver: () => boolean): Promise<number> {
    let slowestMs = 0
    while (!isOver()) {
      const startedAtMs = performance.now()
      await publishRow(database.dataSource, organisationId)
      slowestMs = Math.max(slowestMs, performance.now() - startedAtMs)
      await delay(10)
    }
    return slowestMs
  }

  /** Migrates while another transaction is open at first and events are published throughout. */
  async function migrateUnderLoad(url = database.url): Promise<{ applied: string[]; slowestMs: number }> {
    await openTransaction()
    let isOver = false
    const migrating = migrate(url).finally(() => (isOver = true))
    migrating.catch(() => undefined)
    const publishing = publishUntil(() => isOver)
    await delay(OPEN_TRANSACTION_MS)
    expect(isOver, 'the migration is still under way').to.equal(false)
    await client.query('COMMIT')
    return { applied: await migrating, slowestMs: await publishing }
  }

  it('creates indexes without blocking writes, whatever limits DATABASE_URL sets', async () => {
    await revertIndexes()
    expect(await validityOfIndexes()).to.deep.equal({})
    const options = '?options=-c%20lock_timeout%3D1000%20-c%20statement_timeout%3D1000'
    const { applied, slowestMs } = await migrateUnderLoad(database.url + options)
    expect(applied).to.deep.equal(['OnlineIndexes1764600000000'])
    expect(slowestMs).to.be.below(OPEN_TRANSACTION_MS)
    expect(await validityOfIndexes()).to.deep.equal(ALL_VALID)
  })

  it('gives up a lock that it cannot have, so that writes go on, and tries again', async () => {
    await revert(new PausedWorkflows8())
    const { applied, slowestMs } = await migrateUnderLoad()
    expect(applied).to.deep.equal(['PausedWorkflows1764700000000'])
    expect(slowestMs).to.be.below(OPEN_TRANSACTION_MS)
  })

  it('creates again an index that an interruption left invalid', async () => {
    await revertIndexes()
    await openTransaction()
    const interrupted = new pg.Client({ connectionString: database.url })
    interrupted.on('error', () => undefined)
    await interrupted.connect()
    const { rows } = await interrupted.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const interruption = interrupted
      .query('CREATE INDEX CONCURRENTLY event_trace_idx ON event (organisation_id, trace_id, sequence)')
      .then(() => null, String)
    await eventually(async () => expect(await validityOfIndexes()).to.deep.equal({ event_trace_idx: false }))
    await database.dataSource.query('SELECT pg_cancel_backend($1)', [rows[0]!.pid])
    expect(await interruption).to.include('user request')
    await interrupted.end()
    await client.query('COMMIT')
    expect(await validityOfIndexes()).to.deep.equal({ event_trace_idx: false })

    expect(await migrate(database.url)).to.deep.equal(['OnlineIndexes1764600000000'])
    expect(await validityOfIndexes()).to.deep.equal(ALL_VALID)
  })

  it('waits for an index that another session is creating, and leaves it', async () => {
    await revertIndexes()
    await openTransaction()
    const other = new pg.Client({ connectionString: database.url })
    other.on('error', () => undefined)
    await other.connect()
    const creating = other.query(
      'CREATE INDEX CONCURRENTLY event_trace_idx ON event (organisation_id, trace_id, sequence)',
    )
    creating.catch(() => undefined)
    const oidOf = async (): Promise<unknown> =>
      (
        await database.dataSource.query<{ oid: unknown }[]>(
          `SELECT to_regclass('event_trace_idx')::oid AS oid`,
        )
      )[0]!.oid
    const oid = await eventually(async () => {
      const found = await oidOf()
      expect(found).not.to.equal(null)
      return found
    })
    const migrating = migrate(database.url)
    migrating.catch(() => undefined)
    await delay(500)
    await client.query('COMMIT')
    await creating
    await migrating
    await other.end()
    expect(await oidOf()).to.equal(oid)
    expect(await validityOfIndexes()).to.deep.equal(ALL_VALID)
  })

  it('leaves an index whose build has ended and is about to commit', async () => {
    const setValid = (isValid: boolean) =>
      database.dataSource.query(
        `UPDATE pg_index SET indisvalid = $1 WHERE indexrelid = to_regclass('event_trace_idx')`,
        [isValid],
      )
    const statements: string[] = []
    const runner = database.dataSource.createQueryRunner()
    const query = runner.query.bind(runner)
    const followed = async (sql: string): Promise<unknown> => {
      const result: unknown = await query(sql)
      statements.push(sql)
      if (sql.includes('event_trace_idx')) await setValid(true)
      return result
    }
    runner.query = followed as typeof runner.query
    try {
      await setValid(false)
      await new OnlineIndexes7().up(runner)
    } finally {
      await runner.release()
    }
    expect(
      statements.filter((sql) => sql.includes('DROP') || sql.includes('event_trace_idx" ON')),
    ).to.deep.equal([])
    expect(await validityOfIndexes()).to.deep.equal(ALL_VALID)
  })

  it('leaves indexes alone that an earlier version has created', async () => {
    await database.dataSource.query(`DELETE FROM migrations WHERE name ~ 'OnlineIndexes|OperatorIndexes'`)
    expect(await migrate(database.url)).to.have.lengthOf(2)
    expect(await validityOfIndexes()).to.deep.equal(ALL_VALID)
  })
})
