import { expect } from 'chai'
import { connect } from 'node:net'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import type { DataSource } from 'typeorm'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { createApp } from '../../../src/http/app.ts'
import { listen } from '../../../src/http/listen.ts'
import type { ApiDependencies } from '../../../src/http/api.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failWrites } from '../../faults/rig/sql-faults.ts'
import { createDatabaseRelay, type DatabaseRelay } from '../../helpers/database/database-relay.ts'
import { sendBytes } from '../../helpers/api/raw-request.ts'
import { useDatabase } from '../../helpers/database/database.ts'

describe('GET /readyz', () => {
  const database = useDatabase()
  let member: TestMember
  const opened: TestApi[] = []
  const pools: DataSource[] = []
  const relays: DatabaseRelay[] = []

  before(async () => {
    member = await createMember(database.dataSource)
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((api) => api.close()))
    await Promise.all(pools.splice(0).map((pool) => pool.destroy()))
    await Promise.all(relays.splice(0).map((relay) => relay.cut()))
  })

  async function open(
    overrides: Partial<ApiDependencies> = {},
    { dataSource }: { dataSource: DataSource } = database,
  ): Promise<TestApi> {
    const api = await createTestApi(dataSource, overrides)
    opened.push(api)
    return api
  }

  /** An API whose way to PostgreSQL can be cut and mended. */
  async function openThroughRelay(): Promise<{ api: TestApi; relay: DatabaseRelay }> {
    const relay = await createDatabaseRelay(database.url)
    relays.push(relay)
    const dataSource = createDataSource({ url: relay.url, poolSize: 2 })
    await dataSource.initialize()
    pools.push(dataSource)
    return { api: await open({}, { dataSource }), relay }
  }

  async function openWithoutDatabase(): Promise<TestApi> {
    const { api, relay } = await openThroughRelay()
    await relay.cut()
    return api
  }

  it('reports that the recovery of deliveries makes no progress', async () => {
    const api = await open({ sweep: { isStalled: () => true } })
    const answer = await api.call('GET', '/readyz')
    expect(answer.status).to.equal(200)
    expect(answer.json).to.deep.equal({ database: 'up', engine: 'up', sweep: 'stalled' })
  })

  it('answers 503 while events cannot be committed although the database answers, and ok once one is', async () => {
    const api = await open()
    const publish = async (): Promise<number> => {
      const body = { event: 'comment:created', data: {} }
      const path = `/api/orgs/${member.organisationId}/events`
      return (await api.call('POST', path, { apiKey: member.apiKey, body })).status
    }
    const repair = await failWrites(database.dataSource, { table: 'event', sqlstate: '53100' })
    try {
      expect(await publish()).to.equal(503)
      const answer = await api.call('GET', '/readyz')
      expect([answer.status, answer.json]).to.deep.equal([503, { database: 'down', engine: 'up' }])
    } finally {
      await repair()
    }
    expect(await publish()).to.equal(202)
    expect((await api.call('GET', '/readyz')).status).to.equal(200)
  })

  it('answers ok while a statement takes too long: its event is refused for a while', async () => {
    const api = await open()
    const repair = await failWrites(database.dataSource, { table: 'event', sqlstate: '57014' })
    try {
      for (const key of [undefined, 'takes-too-long']) {
        const answer = await api.call('POST', `/api/orgs/${member.organisationId}/events`, {
          apiKey: member.apiKey,
          body: { event: 'comment:created', data: {} },
          ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
        })
        expect(answer.status).to.equal(503)
        expect(answer.json).to.include({ code: 'overloaded' })
        expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/)
      }
      expect((await api.call('GET', '/readyz')).status).to.equal(200)
    } finally {
      await repair()
    }
  })

  it('accepts events while Temporal is unavailable', async () => {
    const api = await open({ temporal: { isUp: () => Promise.resolve(false), workerLoad: () => null } })
    const answer = await api.call('POST', `/api/orgs/${member.organisationId}/events`, {
      apiKey: member.apiKey,
      body: { event: 'comment:created', data: {} },
    })
    expect(answer.status).to.equal(202)
  })

  describe('without the database', () => {
    for (const [method, path, body] of [
      ['GET', '/webhooks', undefined],
      ['POST', '/events', { event: 'comment:created', data: {} }],
    ] as const) {
      it(`answers ${method} ${path} with 503 and when to try again`, async () => {
        const api = await openWithoutDatabase()
        const answer = await api.call(method, `/api/orgs/${member.organisationId}${path}`, {
          ...member,
          body,
        })
        expect(answer.status).to.equal(503)
        expect(answer.headers.get('content-type')).to.match(/^application\/problem\+json/)
        expect(answer.json).to.include({ code: 'unavailable' })
        expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/)
      })
    }
  })

  it('recovers with the database', async () => {
    const { api, relay } = await openThroughRelay()
    const list = () =>
      api.call('GET', `/api/orgs/${member.organisationId}/webhooks`, { apiKey: member.apiKey })
    expect((await list()).status).to.equal(200)
    await relay.cut()
    expect((await list()).status).to.equal(503)
    await relay.restore()
    await eventually(async () => expect((await list()).status).to.equal(200))
    expect((await api.call('GET', '/readyz')).status).to.equal(200)
  })
})

describe('listen', () => {
  it('closes without waiting for a sender that stalls', async () => {
    const app = createApp({
      logger: { info: () => undefined },
      trustedProxies: [],
      publicUrl: '',
      operatorKeys: { isConfigured: false },
      frameAncestors: [],
    } as unknown as ApiDependencies)
    app.middleware.length = 0
    app.use(async (ctx) => {
      await buffer(ctx.req)
    })
    const listening = await listen(app, { host: '127.0.0.1', port: 0, closeGraceMs: 100 })
    const socket = connect(listening.port, '127.0.0.1')
    // Node.js 26 resets the connection, older releases end it.
    socket.on('error', () => undefined)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await once(socket, 'connect')
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx')
    await Promise.all([closed, listening.close()])
    expect(await sendBytes(listening.url, 'GET / HTTP/1.1\r\n\r\n')).to.equal('')
  })
})
