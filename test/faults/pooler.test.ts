import { expect } from 'chai'
import { migrate } from '../../src/cli/migrate.ts'
import { allowLongerStatements } from '../../src/db/connection/database-client.ts'
import { closeDataSource, createDataSource } from '../../src/db/connection/data-source.ts'
import { examine, settingsOf } from '../helpers/doctor/doctored.ts'
import { publishBurst } from '../helpers/processes/burst.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { isPgBouncerInstalled, startPgBouncer, type PgBouncer } from './rig/pgbouncer.ts'

const EVENTS = 300

describe('PgBouncer in transaction mode', () => {
  if (!isPgBouncerInstalled) {
    it.skip('PGBOUNCER IS NOT INSTALLED: nothing of this was tried (apt-get install pgbouncer)')
    return
  }
  const stage = useStage()
  let bouncer: PgBouncer

  beforeEach(async () => {
    // Fewer connections than a process has, so that each transaction may have another one.
    bouncer = await startPgBouncer(stage.databaseUrl, { poolSize: 5 })
  })
  afterEach(() => bouncer.stop())

  it(`publishes and delivers ${EVENTS} events, 16 at a time`, async () => {
    const posthorn = await stage.start({
      databaseUrl: bouncer.urlOf(stage.databaseUrl),
      env: { DATABASE_POOLER: 'transaction' },
    })
    const deliveries = await publishBurst(stage, posthorn, EVENTS)
    expect(deliveries).to.have.lengthOf(EVENTS)
    for (const id of deliveries) await stage.reaches(id, { state: 'completed', attempts: 1 }, 60_000)
    expect(posthorn.log()).not.to.match(/prepared statement|unsupported startup parameter|http\.fault/)
    expect(await posthorn.stop()).to.equal(0)
  })

  it('records failures, and retries and discards deliveries', async () => {
    const posthorn = await stage.start({
      databaseUrl: bouncer.urlOf(stage.databaseUrl),
      env: { DATABASE_POOLER: 'transaction' },
    })
    stage.answerWith(() => 500)
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 4 })
    const { organisationId, apiKey } = stage.member
    const webhook = `/api/orgs/${organisationId}/webhooks/${stage.webhookId}`
    const off = await posthorn.call('PATCH', webhook, { apiKey, body: { enabled: false } })
    expect(off.status, off.text).to.equal(200)
    await stage.reaches(deliveryId, { state: 'stopped', attempts: 4 })
    expect(posthorn.log()).not.to.match(/prepared statement|unsupported startup parameter|http\.fault/)
  })

  it('is found by posthorn doctor where DATABASE_POOLER does not name it', async () => {
    const problemsWith = async (pooler: string): Promise<string[]> => {
      const url = bouncer.urlOf(stage.databaseUrl)
      return (await examine(settingsOf(url, { DATABASE_POOLER: pooler }))).problems
    }
    expect(await problemsWith('none')).to.include('error database.pooler_undeclared')
    expect(await problemsWith('transaction')).not.to.include('error database.pooler_undeclared')
  })

  it('is found in session mode too, where it drops the limits of connections', async () => {
    const options = { poolSize: 30, mode: 'session', ignored: 'options' }
    const dropping = await startPgBouncer(stage.databaseUrl, options)
    try {
      const settings = settingsOf(dropping.urlOf(stage.databaseUrl), { DATABASE_POOLER: 'none' })
      expect((await examine(settings)).problems).to.include('error database.pooler_undeclared')
    } finally {
      await dropping.stop()
    }
  })

  it('applies migrations', async () => {
    await stage.dataSource.query('CREATE DATABASE through_pooler')
    const url = Object.assign(new URL(stage.databaseUrl), { pathname: '/through_pooler' }).href
    try {
      expect(await migrate(bouncer.urlOf(url), 'transaction')).not.to.deep.equal([])
      expect(await migrate(bouncer.urlOf(url), 'transaction')).to.deep.equal([])
    } finally {
      await stage.dataSource.query('DROP DATABASE through_pooler WITH (FORCE)')
    }
  })

  it('keeps time limits per transaction', async () => {
    const pool = await createDataSource({
      url: bouncer.urlOf(stage.databaseUrl),
      poolSize: 2,
      pooler: 'transaction',
      statementTimeoutMs: 1_000,
    }).initialize()
    try {
      const cancelled: unknown = await pool
        .transaction((manager) => manager.query('SELECT pg_sleep(10)'))
        .catch((error: unknown) => error)
      expect(cancelled).to.include({ code: '57014' })
      await pool.transaction(async (manager) => {
        await allowLongerStatements(manager, 10_000)
        await manager.query('SELECT pg_sleep(1.5)')
      })
      const limits = await pool.query<{ statement_timeout: string }[]>('SHOW statement_timeout')
      expect(limits).to.deep.equal([{ statement_timeout: '0' }])
    } finally {
      await closeDataSource(pool)
    }
  })
})
