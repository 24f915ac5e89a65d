import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { closeDataSource, createDataSource } from '../../../src/db/connection/data-source.ts'
import { claimAttempts } from '../../../src/deliveries/protocol/claim.ts'
import { commitEvents } from '../../../src/deliveries/protocol/commit-events.ts'
import {
  recordFailures,
  recordFirstSuccesses,
  recordSuccesses,
} from '../../../src/deliveries/protocol/record-attempts.ts'
import { createMember, createWebhookRow, testCommits, testEvent } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const TABLES = ['event', 'delivery', 'attempt']
const GROWN_TO = 20_000

describe('query plans that a connection made while its tables were empty', () => {
  const database = useDatabase()
  let organisationId: string

  before(async () => {
    ;({ organisationId } = await createMember(database.dataSource))
    await createWebhookRow(database.dataSource, { organisationId, url: 'https://receiver.example.com/' })
    for (const table of TABLES)
      await database.dataSource.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
  })

  /** Publishes events, claims the attempt of one and records all of them, as a process does under load. */
  async function publishAndRecord(db: DataSource, count: number): Promise<void> {
    const events = Array.from({ length: count }, () => testEvent(organisationId))
    const { reserve, leaseMs } = testCommits()
    const commit = { ...reserve([], count), leaseMs }
    const deliveries = (await commitEvents(db, events, commit)).flat()
    expect(deliveries).to.have.lengthOf(count)
    const owner = randomUUID()
    const { deliveryId } = deliveries[0]!
    await claimAttempts(db, [{ organisationId, deliveryId, number: 1, owner, isWorkflow: false }], leaseMs)
    const records = deliveries.map(({ deliveryId }) => ({
      organisationId,
      deliveryId,
      number: 1,
      trigger: 'schedule' as const,
      url: 'https://receiver.example.com/',
      startedAt: new Date(),
      durationMs: 1,
      failureCode: null,
      statusCode: 200,
      error: null,
      response: null,
      owner,
    }))
    const recorded = await recordFirstSuccesses(db, records, null)
    expect(recorded.every(Boolean)).to.equal(true)
    // They change nothing any more.
    await recordSuccesses(db, records.slice(0, 1), null)
    const failure = { ...records[0]!, next: 'waiting', dueInMs: 1 } as const
    await recordFailures(db, [failure], null)
  }

  /** Rows that were read by reading tables from end to end, of all sessions so far. */
  async function readFromEndToEnd(db: DataSource): Promise<number> {
    await db.query('SELECT pg_stat_force_next_flush()')
    const [{ sum }] = await db.query<[{ sum: string }]>(
      `SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = ANY($1)`,
      [TABLES],
    )
    return Number(sum)
  }

  it('are not made for each call of the statements of an attempt', async () => {
    const pool = await createDataSource({ url: database.url, poolSize: 1 }).initialize()
    try {
      // For few rows any plan is as cheap as another.
      await publishAndRecord(pool, 3_000)
      for (const table of TABLES) await pool.query(`ANALYZE ${table}`)
      for (let round = 0; round < 20; round++) await publishAndRecord(pool, 1)
      const made = await pool.query<{ name: string; generic: number }[]>(
        `SELECT name, generic_plans::int AS generic FROM pg_prepared_statements ORDER BY name`,
      )
      const hot = ['claim', 'commit_events', 'record_failure', 'record_first_success', 'record_success']
      expect(made.filter(({ generic }) => generic > 0).map(({ name }) => name)).to.deep.equal(hot)
    } finally {
      await closeDataSource(pool)
    }
  })

  for (const pooler of ['none', 'transaction'] as const) {
    it(`are renewed as the tables grow, with DATABASE_POOLER=${pooler}`, async () => {
      const pool = await createDataSource({ url: database.url, poolSize: 1, pooler }).initialize()
      try {
        await database.dataSource.query(`TRUNCATE ${TABLES.join(', ')}`)
        // What the server knows of the tables from now on is that they are empty.
        for (const table of TABLES) await database.dataSource.query(`VACUUM ANALYZE ${table}`)
        for (let round = 0; round < 20; round++) await publishAndRecord(pool, 1)
        for (let rows = 0; rows < GROWN_TO; rows += 1_000) {
          await publishAndRecord(database.dataSource, 1_000)
          // The pool closes a connection that is idle for ten seconds, and its plans would be gone.
          await pool.query('SELECT 1')
        }
        for (let round = 0; round < 50; round++) await publishAndRecord(pool, 1)
        const before = await readFromEndToEnd(pool)
        for (let round = 0; round < 20; round++) await publishAndRecord(pool, 5)
        expect((await readFromEndToEnd(pool)) - before).to.equal(0)
      } finally {
        await closeDataSource(pool)
      }
    })
  }
})
