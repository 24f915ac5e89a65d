import { mkdtempSync, chmodSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { migrate } from '../../src/cli/migrate.ts'
import { createDataSource } from '../../src/db/connection/data-source.ts'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { freePort } from '../../src/free-port.ts'
import { startTemporalDevServer } from '../../src/dev/temporal-dev-server.ts'
import { eventually } from '../helpers/eventually.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { createStage } from '../helpers/processes/stage.ts'

const OUTAGE_MS = 20_000
const silently = (): void => undefined

describe('an outage of twenty seconds', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-outage-'))
    // PostgreSQL does not run as root: its user has to get in.
    chmodSync(folder, 0o755)
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('of PostgreSQL in mid-delivery: records the outcome when it is back, after one POST; the API answers 503', async () => {
    const port = await freePort()
    const start = () =>
      startEmbeddedPostgres({
        dataDir: join(folder, 'postgres'),
        port,
        logFile: join(folder, 'postgres.log'),
        print: silently,
      })
    let postgres = await start()
    await postgres.createDatabase('outage')
    const url = postgres.databaseUrl('outage')
    await migrate(url)
    const dataSource = createDataSource({ url, poolSize: 5 })
    await dataSource.initialize()
    const stage = await createStage({ database: { url, dataSource, drop: () => dataSource.destroy() } })

    let release: () => void = silently
    const held = new Promise<void>((resolve) => (release = resolve))
    stage.answerWith(async () => {
      await held
      return 200
    })
    const posthorn = await stage.start()
    const deliveryId = await stage.publish(posthorn)
    await eventually(() => expect(stage.receiver.posts).to.have.length(1))
    await postgres.stop()
    release()
    const refused = await posthorn.call('GET', `/api/orgs/${stage.member.organisationId}/webhooks`, {
      apiKey: stage.member.apiKey,
    })
    expect(refused.status).to.equal(503)
    expect(refused.headers.get('retry-after')).to.match(/^\d+$/)
    expect((await posthorn.call('GET', '/readyz')).json).to.deep.equal({ database: 'down', engine: 'up' })
    await delay(OUTAGE_MS)
    postgres = await start()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    expect(stage.receiver.posts).to.have.length(1)
    expect(await posthorn.stop()).to.equal(0)
    await stage.close()
    await postgres.stop()
  })

  it('of Temporal while fifty events are published: accepts and delivers all meanwhile; their workflows follow', async () => {
    const port = await freePort()
    const start = () =>
      startTemporalDevServer({
        executable: testServers().temporalCli,
        dbFile: join(folder, 'temporal.db'),
        port,
        logFile: join(folder, 'temporal.log'),
        headless: true,
        print: silently,
      })
    let temporal = await start()
    const stage = await createStage({ temporalAddress: temporal.address })
    const posthorn = await stage.start()
    const before = await stage.publish(posthorn)
    await stage.reaches(before, { state: 'completed', attempts: 1 })

    await temporal.stop()
    const deliveries: string[] = []
    for (let count = 0; count < 50; count++) deliveries.push(await stage.publish(posthorn))
    expect((await posthorn.call('GET', '/readyz')).json).to.deep.equal({ database: 'up', engine: 'down' })
    await delay(OUTAGE_MS)
    expect(await stage.uncompleted()).to.equal(0)
    const owed = 'SELECT id FROM delivery WHERE sweep_at IS NOT NULL'
    expect(await stage.dataSource.query(owed)).to.have.length(50)
    temporal = await start()
    await eventually(async () => expect(await stage.dataSource.query(owed)).to.deep.equal([]), 120_000)
    for (const deliveryId of deliveries) expect(stage.receiver.postsOf(deliveryId)).to.have.length(1)
    expect(await posthorn.stop()).to.equal(0)
    await stage.close()
    await temporal.stop()
  })
})
