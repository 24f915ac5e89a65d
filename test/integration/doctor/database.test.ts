import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import pg from 'pg'
import { createTestDatabase, openTransaction, useDatabase } from '../../helpers/database/database.ts'
import { createRefusingPooler, examine, settingsOf } from '../../helpers/doctor/doctored.ts'
import { freePort } from '../../../src/free-port.ts'

const PASSWORD = 'Pw-in-clear-7731'

describe('posthorn doctor examines the database', () => {
  const database = useDatabase()
  const role = `doctor_${randomUUID().replaceAll('-', '')}`

  before(() => database.dataSource.query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`))
  after(async () => {
    await database.dataSource.query(`DROP OWNED BY ${role}`)
    await database.dataSource.query(`DROP ROLE ${role}`)
  })

  const as = (username: string, password: string): string =>
    Object.assign(new URL(database.url), { username, password }).href

  it('finds no problem in one that is up to date', async () => {
    const { problems, skipped } = await examine(settingsOf(database.url))
    expect([problems, skipped]).to.deep.equal([[], []])
  })

  it('names an unreachable one with its address, and what was skipped for it', async () => {
    const port = await freePort()
    const url = `postgres://posthorn:${PASSWORD}@127.0.0.1:${port}/hooks`
    const { status, problems, skipped, find } = await examine(settingsOf(url))
    expect([status, problems]).to.deep.equal(['error', ['error database.unreachable']])
    expect(skipped).to.deep.equal([
      'database.version',
      'database.writable',
      'database.durability',
      'database.rights',
      'database.pooler',
      'database.clock',
      'database.migrations',
      'keys.encryption',
      'deliveries.backlog',
      'deliveries.recovery',
      'deliveries.following',
      'deliveries.workflows',
      'deliveries.unpaused',
      'incidents.progress',
      'retry_jobs.progress',
      'retry_jobs.workflows',
      'erasures.progress',
      'erasures.workflows',
      'retention.progress',
    ])
    const { seen, cure } = find('database.unreachable')
    expect(seen).to.include('ECONNREFUSED').and.include(`127.0.0.1:${port}/hooks`).and.not.include(PASSWORD)
    expect(cure).to.include('DATABASE_URL')
  })

  it('tells a refused password from a missing database', async () => {
    const refused = await examine(settingsOf(as(role, 'wrong')))
    expect(refused.problems).to.deep.equal(['error database.login_refused'])
    const elsewhere = Object.assign(new URL(database.url), { pathname: '/not_there' }).href
    const missing = await examine(settingsOf(elsewhere))
    expect(missing.problems).to.deep.equal(['error database.missing'])
  })

  it('names the rights that the role lacks', async () => {
    const without = await examine(settingsOf(as(role, PASSWORD)))
    expect(new Set(without.problems)).to.deep.equal(new Set(['error database.rights_missing']))
    await database.dataSource.query(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`)
    await database.dataSource.query(`GRANT INSERT, UPDATE, DELETE ON event TO ${role}`)
    const { problems, find } = await examine(settingsOf(as(role, PASSWORD)))
    expect(problems).to.deep.equal(['error database.rights_missing'])
    expect(find('database.rights_missing').seen)
      .to.include('delivery: DELETE, INSERT, UPDATE')
      .and.not.include('event:')
  })

  it('names a role that may not write', async () => {
    await database.dataSource.query(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`)
    await database.dataSource.query(`ALTER ROLE ${role} SET default_transaction_read_only = on`)
    const { problems } = await examine(settingsOf(as(role, PASSWORD)))
    await database.dataSource.query(`ALTER ROLE ${role} RESET default_transaction_read_only`)
    expect(problems).to.deep.equal(['error database.read_only'])
  })

  it('names what would lose answered events in a crash', async () => {
    await database.dataSource.query(`ALTER ROLE ${role} SET synchronous_commit = on`)
    const safe = await examine(settingsOf(as(role, PASSWORD)))
    expect(safe.find('database.fsync_off').level).to.equal('error')
    expect(safe.find('database.full_page_writes_off').level).to.equal('warning')
    expect(() => safe.find('database.synchronous_commit_off')).to.throw('no database.synchronous_commit_off')
    await database.dataSource.query(`ALTER ROLE ${role} SET synchronous_commit = off`)
    const unsafe = await examine(settingsOf(as(role, PASSWORD)))
    expect(unsafe.find('database.synchronous_commit_off').level).to.equal('error')
  })

  it('names the checks that a locked table stops, and no others', async () => {
    const locker = await openTransaction(database.dataSource)
    await locker.query('LOCK TABLE delivery IN ACCESS EXCLUSIVE MODE')
    const { problems, find } = await examine(settingsOf(database.url)).finally(async () => {
      await locker.rollbackTransaction()
      await locker.release()
    })
    expect(problems).to.deep.equal([
      'error database.check_failed',
      ...Array<string>(5).fill('error deliveries.check_failed'),
    ])
    expect(find('database.check_failed').seen).to.match(/^deliveries.workflows: .* lock timeout$/)
    expect(find('deliveries.check_failed').seen).to.equal(
      'deliveries.backlog: canceling statement due to lock timeout',
    )
  })

  it('does not guess that a pooler which it cannot see is absent', async () => {
    const { problems, find } = await examine(settingsOf(database.url, { DATABASE_POOLER: 'transaction' }))
    expect(problems).to.deep.equal([])
    expect(find('database.pooler').seen).to.equal(
      'DATABASE_POOLER=transaction suits a server with a pooler and without one',
    )
  })

  it('names a pooler that refuses the limits of a session', async () => {
    const pooler = await createRefusingPooler()
    const url = `postgres://u:p@127.0.0.1:${pooler.port}/x`
    const { problems, find } = await examine(settingsOf(url)).finally(() => pooler.close())
    expect(problems).to.deep.equal(['error database.pooler_undeclared'])
    expect(find('database.pooler_undeclared').seen).to.include('unsupported startup parameter')
  })

  describe('whose migrations differ', () => {
    it('names those that are pending, and skips what reads the tables', async () => {
      const other = await createTestDatabase()
      try {
        await other.dataSource.query('DELETE FROM migrations WHERE id = (SELECT max(id) FROM migrations)')
        const { problems, skipped, find } = await examine(settingsOf(other.url))
        expect(problems).to.deep.equal(['error database.migrations_pending'])
        expect(find('database.migrations_pending').seen).to.equal(
          `not applied: ${other.dataSource.migrations.at(-1)?.name}`,
        )
        expect(skipped).to.include.members(['keys.encryption', 'deliveries.recovery'])
      } finally {
        await other.drop()
      }
    })

    it('names those of a newer release', async () => {
      const other = await createTestDatabase()
      try {
        await other.dataSource.query(
          `INSERT INTO migrations (timestamp, name) VALUES (1999999999999, 'Later1999999999999')`,
        )
        const { problems, find } = await examine(settingsOf(other.url))
        expect(problems).to.deep.equal(['warning database.migrations_unknown'])
        expect(find('database.migrations_unknown').seen).to.include('Later1999999999999')
      } finally {
        await other.drop()
      }
    })

    it('leaves an empty database empty', async () => {
      const name = `empty_${randomUUID().replaceAll('-', '')}`
      await database.dataSource.query(`CREATE DATABASE ${name}`)
      try {
        const url = Object.assign(new URL(database.url), { pathname: `/${name}` }).href
        for (let times = 0; times < 2; times++) {
          const { problems, find } = await examine(settingsOf(url))
          expect(problems).to.deep.equal(['error database.migrations_pending'])
          expect(find('database.rights').level).to.equal('ok')
        }
        const other = new pg.Client({ connectionString: url })
        await other.connect()
        const { rows } = await other.query("SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace")
        await other.end()
        expect(rows).to.deep.equal([])
      } finally {
        await database.dataSource.query(`DROP DATABASE ${name} WITH (FORCE)`)
      }
    })
  })
})
