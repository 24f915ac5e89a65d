import { mock } from 'node:test'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { readReadiness, type ReadinessParts } from '../../../src/http/readiness.ts'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { createSweeper, type Sweeper } from '../../../src/deliveries/recovery/sweeper.ts'
import { listen, type Listening } from '../../../src/http/listen.ts'
import { createMetricsApp } from '../../../src/process/metrics/metrics-app.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { NO_LOAD } from '../../../src/temporal/worker.ts'
import { createDatabaseRelay, type DatabaseRelay } from '../../helpers/database/database-relay.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { createTestDispatcher, testRows } from '../../helpers/deliveries/dispatcher.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { eventually } from '../../helpers/eventually.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { createFakeTemporal } from '../../helpers/temporal/fake-temporal.ts'

/** Of a pass that has run for longer than a sweep may. */
const STALLED_MS = 31_000

describe('the probes of the metrics port', () => {
  const database = useDatabase()
  let relay: DatabaseRelay
  let pool: DataSource
  const opened: { close(): Promise<unknown> }[] = []

  beforeEach(async () => {
    relay = await createDatabaseRelay(database.url)
    pool = await createDataSource({ url: relay.url, poolSize: 2 }).initialize()
  })
  afterEach(async () => {
    mock.restoreAll()
    await Promise.all(opened.splice(0).map((one) => one.close()))
    await pool.destroy()
    await relay.cut()
  })

  const polling = { ...NO_LOAD, isRunning: true }
  const temporalOf = (state: { isUp?: boolean; load?: typeof NO_LOAD | null } = {}) => {
    const { isUp = true, load = polling } = state
    return { isUp: () => Promise.resolve(isUp), workerLoad: () => load }
  }

  /** The port of a worker, by default one of which every part does well. */
  async function open(overrides: Partial<ReadinessParts> = {}): Promise<Listening> {
    const parts: ReadinessParts = {
      dataSource: pool,
      publish: { isFailing: () => false },
      temporal: temporalOf(),
      sweep: { isStalled: () => false },
      stopping: new AbortController().signal,
      ...overrides,
    }
    const readiness = () => readReadiness(parts, parts.sweep === null ? 'api' : 'worker')
    const app = createMetricsApp({ scrape: () => Promise.resolve(''), readiness, logger: silentLogger })
    const listening = await listen(app, { host: '127.0.0.1', port: 0 })
    opened.push(listening)
    return listening
  }
  const ask = async ({ url }: Listening, path: string): Promise<unknown[]> => {
    const answer = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(5_000) })
    expect(answer.headers.get('cache-control')).to.equal('no-store')
    return [answer.status, await answer.json()]
  }

  it('answer 200 while every part works', async () => {
    const port = await open()
    expect(await ask(port, '/readyz')).to.deep.equal([200, { database: 'up', engine: 'up' }])
    expect(await ask(port, '/healthz')).to.deep.equal([200, { status: 'ok' }])
  })

  it('name a database that is away until it is back, while the process is alive', async () => {
    const port = await open()
    await relay.cut()
    expect(await ask(port, '/readyz')).to.deep.equal([503, { database: 'down', engine: 'up' }])
    expect(await ask(port, '/healthz')).to.deep.equal([200, { status: 'ok' }])
    await relay.restore()
    await eventually(async () =>
      expect(await ask(port, '/readyz')).to.deep.equal([200, { database: 'up', engine: 'up' }]),
    )
  })

  it('name a database that takes no writes', async () => {
    const url = new URL(database.url)
    url.searchParams.set('options', '-c default_transaction_read_only=on')
    const readOnly = await createDataSource({ url: url.href, poolSize: 1 }).initialize()
    opened.push({ close: () => readOnly.destroy() })
    const port = await open({ dataSource: readOnly })
    expect(await ask(port, '/readyz')).to.deep.equal([503, { database: 'down', engine: 'up' }])
  })

  it('name a pass of the sweeper that does not end, until it ends', async () => {
    const { sweep, isHanging, release } = await hangingSweeper()
    const port = await open({ sweep })
    sweep.start()
    await isHanging
    expect((await ask(port, '/readyz'))[0]).to.equal(200)
    const realNow = performance.now.bind(performance)
    mock.method(performance, 'now', () => realNow() + STALLED_MS)
    expect(await ask(port, '/readyz')).to.deep.equal([
      503,
      { database: 'up', engine: 'up', sweep: 'stalled' },
    ])
    release()
    await eventually(async () => expect((await ask(port, '/readyz'))[0]).to.equal(200))
  })

  it('name a worker that Temporal does not answer, and one that takes no tasks', async () => {
    for (const temporal of [temporalOf({ isUp: false }), temporalOf({ load: NO_LOAD })]) {
      const port = await open({ temporal })
      expect(await ask(port, '/readyz')).to.deep.equal([503, { database: 'up', engine: 'down' }])
    }
  })

  it('answer 200 without Temporal in a process without a worker', async () => {
    const port = await open({ sweep: null, temporal: temporalOf({ isUp: false, load: null }) })
    expect(await ask(port, '/readyz')).to.deep.equal([200, { database: 'up', engine: 'down' }])
  })

  it('name a process that stops', async () => {
    const port = await open({ stopping: AbortSignal.abort() })
    expect(await ask(port, '/readyz')).to.deep.equal([
      503,
      { database: 'up', engine: 'up', process: 'stopping' },
    ])
  })

  /** A sweeper whose first call to Temporal does not end before `release`. */
  async function hangingSweeper(): Promise<{
    sweep: Sweeper
    isHanging: Promise<void>
    release: () => void
  }> {
    const { organisationId } = await createMember(pool)
    await createWebhookRow(pool, { organisationId, url: 'https://receiver.example.com/' })
    const [delivery] = await publishRow(pool, organisationId)
    await setRow(pool, delivery!.deliveryId, { state: 'stopped', workflow: true, sweepInMs: -1 })
    let release = (): void => undefined
    let hangs = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    const isHanging = new Promise<void>((resolve) => (hangs = resolve))
    const hang = (): Promise<void> => {
      hangs()
      return released
    }
    const workflows = { ...createFakeTemporal().workflows, wake: hang, stop: hang }
    const metrics = createMetrics()
    const common = { rows: testRows(pool), workflows, logger: silentLogger, metrics }
    const dispatcher = createTestDispatcher(common)
    const rest = { start: () => Promise.resolve(), signal: () => Promise.resolve() }
    const sweep = createSweeper({
      ...common,
      dataSource: pool,
      retryWorkflows: rest,
      erasureWorkflows: rest,
      incidentWorkflows: rest,
      terminateIfStuck: () => Promise.resolve({ state: 'alive' }),
      isServing: () => true,
      dispatcher,
    })
    const close = async (): Promise<void> => {
      release()
      await sweep.stop()
      await dispatcher.stop()
    }
    opened.push({ close })
    return { sweep, isHanging, release }
  }
})
