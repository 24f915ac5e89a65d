import { expect } from 'chai'
import { createDatabaseProxy } from '../faults/rig/database-proxy.ts'
import { createTcpProxy, type TcpProxy } from '../faults/rig/tcp-proxy.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'
import { testServers } from '../helpers/runner/servers.ts'

/** The next check of a connection that was silent or refused comes after a few seconds. */
const BACK_WITHIN_MS = 40_000

describe('the probes of a worker', () => {
  let stage: Stage
  let worker: PosthornProcess
  let database: TcpProxy & { url: string }
  let temporal: TcpProxy

  before(async () => {
    stage = await createStage()
    database = await createDatabaseProxy(stage.databaseUrl)
    const { hostname, port } = new URL(`tcp://${testServers().temporalAddress}`)
    temporal = await createTcpProxy({ host: hostname, port: Number(port) })
    worker = await stage.start({
      command: 'worker',
      databaseUrl: database.url,
      temporalAddress: `127.0.0.1:${temporal.port}`,
      env: { METRICS_PORT: '0', SHUTDOWN_GRACE_MS: '1000' },
    })
  })
  after(async () => {
    await stage.close()
    await Promise.all([database.close(), temporal.close()])
  })
  afterEach(() => {
    database.speak()
    temporal.speak()
  })

  const becomes = (status: number, json: object): Promise<void> =>
    eventually(async () => {
      expect(await worker.probe('/readyz')).to.deep.equal({ status, json })
    }, BACK_WITHIN_MS)
  const isReady = (): Promise<void> => becomes(200, { database: 'up', engine: 'up' })
  const isAlive = async (): Promise<void> => {
    expect(await worker.probe('/healthz')).to.deep.equal({ status: 200, json: { status: 'ok' } })
  }

  it('answer 200 once it takes tasks', async () => {
    await isReady()
    await isAlive()
  })

  it('name a database that is silent, until it answers', async () => {
    database.fallSilent('all')
    expect(await worker.probe('/readyz')).to.deep.equal({
      status: 503,
      json: { database: 'down', engine: 'up' },
    })
    await isAlive()
    database.speak()
    await isReady()
  })

  it('name a Temporal that refuses connections, until it accepts them', async () => {
    temporal.refuse()
    await becomes(503, { database: 'up', engine: 'down' })
    await isAlive()
    temporal.speak()
    await isReady()
  })

  it('name a Temporal that is silent, until it answers', async () => {
    temporal.fallSilent('all')
    await becomes(503, { database: 'up', engine: 'down' })
    await isAlive()
    temporal.speak()
    await isReady()
  })
})
