import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { expect } from 'chai'
import { Registry } from 'prom-client'
import type { DataSource } from 'typeorm'
import { createDataSource, poolStatus } from '../../../src/db/connection/data-source.ts'
import { countBacklogInTime } from '../../../src/db/queries/backlog.ts'
import { isDatabaseUp } from '../../../src/db/queries/server-state.ts'
import type { DispatcherLoad } from '../../../src/deliveries/dispatch/dispatcher.ts'
import { listen, type Listening } from '../../../src/http/listen.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createMetricsApp } from '../../../src/process/metrics/metrics-app.ts'
import { createBacklogReader } from '../../../src/process/metrics/backlog-reader.ts'
import { createScrape, type Sources } from '../../../src/process/metrics/scrape.ts'
import { eventually } from '../../helpers/eventually.ts'
import { parseExposition, type Exposition } from '../../helpers/metrics/exposition.ts'
import { createDatabaseRelay, type DatabaseRelay } from '../../helpers/database/database-relay.ts'
import { sendBytes } from '../../helpers/api/raw-request.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { useDatabase } from '../../helpers/database/database.ts'

describe('the metrics listener', () => {
  const database = useDatabase()
  let relay: DatabaseRelay
  let pool: DataSource
  let counting: DataSource
  let core: Server
  let answerOfCore: { status: number; text: string } | 'hangs'
  const opened: Listening[] = []

  beforeEach(async () => {
    relay = await createDatabaseRelay(database.url)
    pool = await createDataSource({ url: relay.url, poolSize: 3 }).initialize()
    counting = await createDataSource({ url: relay.url, poolSize: 2 }).initialize()
    answerOfCore = { status: 200, text: '# TYPE temporal_request_total counter\ntemporal_request_total 5\n' }
    core = createServer((_request, response) => {
      if (answerOfCore === 'hangs') return
      response.writeHead(answerOfCore.status).end(answerOfCore.text)
    }).listen(0, '127.0.0.1')
    await once(core, 'listening')
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((listening) => listening.close()))
    await Promise.all([pool.destroy(), counting.destroy()])
    await relay.cut()
    core.closeAllConnections()
    core.close()
  })

  async function open(sources: Partial<Sources> = {}): Promise<string> {
    const registry = new Registry()
    createMetrics(registry).eventPublished(2)
    const scrape = createScrape(registry, {
      readBacklog: createBacklogReader({
        read: () => countBacklogInTime(counting, 1_000),
        logger: silentLogger,
      }),
      isDatabaseUp: () => isDatabaseUp(counting),
      pool: () => poolStatus(pool),
      dispatcher: () => ({ queued: 7, startsInFlight: 3, inlineInFlight: 5 }),
      temporal: {
        isUp: () => Promise.resolve(true),
        workerLoad: () => ({
          isRunning: true,
          activities: { first: 4, retry: 5, slow: 7 },
          workflowTasks: 2,
          cachedWorkflows: 9,
        }),
      },
      coreMetricsUrl: `http://127.0.0.1:${(core.address() as AddressInfo).port}/metrics`,
      ...sources,
    })
    const readiness = () => Promise.resolve({ isReady: true, body: {} })
    const app = createMetricsApp({ scrape, readiness, logger: silentLogger })
    const listening = await listen(app, { host: '127.0.0.1', port: 0 })
    opened.push(listening)
    return listening.url
  }
  const scraped = async (url: string): Promise<Exposition> => {
    const answer = await fetch(`${url}/metrics`)
    expect(answer.status).to.equal(200)
    return parseExposition(await answer.text())
  }

  it('answers GET /metrics in the text format of Prometheus', async () => {
    const answer = await fetch(`${await open()}/metrics`)
    expect(answer.status).to.equal(200)
    expect(answer.headers.get('content-type')).to.equal('text/plain; version=0.0.4; charset=utf-8')
    expect(answer.headers.get('cache-control')).to.equal('no-store')
    expect(await answer.text()).to.match(/\n$/)
  })

  it('answers 404 for every other path and 405 for every other method', async () => {
    const url = await open()
    for (const path of ['/', '/metrics/', '/METRICS', '/healthz/', '/api/event-keys', '//metrics'])
      expect((await fetch(`${url}${path}`)).status, path).to.equal(404)
    for (const method of ['POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS']) {
      for (const path of ['/metrics', '/healthz', '/readyz']) {
        const answer = await fetch(`${url}${path}`, { method })
        expect([answer.status, answer.headers.get('allow')], method).to.deep.equal([405, 'GET'])
      }
    }
    expect(
      await sendBytes(url, 'GET http://[bad/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
    ).to.match(/^HTTP\/1.1 404/)
    expect((await fetch(`${url}/metrics?at=now`)).status).to.equal(200)
    expect(await sendBytes(url, 'GET /metrics HTTP/1.1\r\n\r\n'), 'without a Host header').to.include(
      'malformed_request',
    )
  })

  it('reports counters and gauges', async () => {
    const { valueOf } = await scraped(await open())
    expect(valueOf('posthorn_events_published_total')).to.equal(1)
    expect(valueOf('posthorn_deliveries_committed_total')).to.equal(2)
    expect(valueOf('posthorn_database_up')).to.equal(1)
    expect(valueOf('posthorn_deliveries', { state: 'waiting' })).to.equal(0)
    expect(valueOf('posthorn_dispatcher_queued')).to.equal(7)
    expect(valueOf('posthorn_workflow_starts_in_flight')).to.equal(3)
    expect(valueOf('posthorn_inline_attempts_in_flight')).to.equal(5)
    expect(valueOf('posthorn_temporal_up')).to.equal(1)
    expect(valueOf('posthorn_worker_running')).to.equal(1)
    expect(valueOf('posthorn_worker_activities', { queue: 'first' })).to.equal(4)
    expect(valueOf('posthorn_worker_activities', { queue: 'retry' })).to.equal(5)
    expect(valueOf('posthorn_worker_activities', { queue: 'slow' })).to.equal(7)
    expect(valueOf('posthorn_worker_workflow_tasks')).to.equal(2)
    expect(valueOf('posthorn_worker_cached_workflows')).to.equal(9)
    expect(valueOf('temporal_request_total')).to.equal(5)
  })

  it('reports the pool, and the backlog even when the pool is exhausted', async () => {
    const url = await open()
    const runners = [1, 2, 3].map(() => pool.createQueryRunner())
    await Promise.all(runners.map((runner) => runner.connect()))
    const late = [pool.query('SELECT 1'), pool.query('SELECT 1')]
    const { valueOf } = await scraped(url)
    const state = (name: string) => valueOf('posthorn_database_pool', { state: name })
    expect([state('total'), state('idle'), state('waiting')]).to.deep.equal([3, 0, 2])
    expect(valueOf('posthorn_database_pool_size')).to.equal(3)
    expect(valueOf('posthorn_database_up')).to.equal(1)
    await Promise.all(runners.map((runner) => runner.release()))
    await Promise.all(late)
    await eventually(() => expect(poolStatus(pool)).to.include({ idle: 3, waiting: 0 }))
  })

  it("omits the worker's metrics without a worker", async () => {
    const temporal = { isUp: () => Promise.resolve(false), workerLoad: () => null }
    const { valueOf } = await scraped(await open({ temporal }))
    expect(valueOf('posthorn_temporal_up')).to.equal(0)
    for (const name of ['running', 'activities', 'workflow_tasks', 'cached_workflows'])
      expect(valueOf(`posthorn_worker_${name}`), name).to.equal(undefined)
  })

  it('answers while the database is unavailable, without its figures', async () => {
    const url = await open()
    expect((await scraped(url)).valueOf('posthorn_deliveries', { state: 'waiting' })).to.equal(0)
    await relay.cut()
    expect((await scraped(url)).valueOf('posthorn_database_up'), 'before the next count').to.equal(0)
    const { valueOf, samples } = await scraped(await open())
    expect(valueOf('posthorn_database_up')).to.equal(0)
    for (const name of ['deliveries', 'oldest_pending_age_seconds', 'overdue_deliveries', 'incidents_open'])
      expect(
        samples.filter((sample) => sample.name === `posthorn_${name}`),
        name,
      ).to.deep.equal([])
    expect(valueOf('posthorn_events_published_total')).to.equal(1)
    expect(valueOf('temporal_request_total')).to.equal(5)
  })

  it('answers while the database hangs', async () => {
    const never = new Promise<never>(() => undefined)
    const readBacklog = createBacklogReader({ read: () => never, logger: silentLogger })
    const silent = { query: () => never } as unknown as DataSource
    const url = await open({ readBacklog, isDatabaseUp: () => isDatabaseUp(silent) })
    for (let scrapes = 0; scrapes < 2; scrapes++) {
      expect((await scraped(url)).valueOf('posthorn_database_up')).to.equal(0)
    }
  })

  for (const [what, answer] of [
    ['hangs', 'hangs'],
    ['fails', { status: 500, text: 'sorry' }],
  ] as const) {
    it(`answers without Temporal's own metrics when their listener ${what}`, async () => {
      const url = await open()
      answerOfCore = answer
      const { valueOf, kinds } = await scraped(url)
      expect(kinds.has('temporal_request_total')).to.equal(false)
      expect(valueOf('posthorn_database_up')).to.equal(1)
    })
  }

  it('answers 500 after a fault of Posthorn, and continues', async () => {
    let isBroken = true
    const dispatcher = (): DispatcherLoad => {
      if (isBroken) throw new Error('a fault of ours')
      return { queued: 0, startsInFlight: 0, inlineInFlight: 0 }
    }
    const url = await open({ dispatcher })
    const answer = await fetch(`${url}/metrics`)
    expect([answer.status, await answer.text()]).to.deep.equal([500, 'Internal Server Error'])
    isBroken = false
    await scraped(url)
  })
})
