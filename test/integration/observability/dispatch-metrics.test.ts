import { expect } from 'chai'
import { Registry } from 'prom-client'
import type { Dispatcher } from '../../../src/deliveries/dispatch/dispatcher.ts'
import { createSweeper } from '../../../src/deliveries/recovery/sweeper.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { parseExposition } from '../../helpers/metrics/exposition.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { createTestDispatcher, testRows } from '../../helpers/deliveries/dispatcher.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'

const CONCURRENCY = 2

describe('the metrics of dispatcher and sweeper', () => {
  const database = useDatabase()
  let organisationId: string
  let registry: Registry
  let dispatcher: Dispatcher
  let release: () => void
  let isAway: boolean

  beforeEach(async () => {
    await database.dataSource.query('TRUNCATE delivery CASCADE')
    organisationId = (await createMember(database.dataSource)).organisationId
    await createWebhookRow(database.dataSource, { organisationId, url: 'https://receiver.example.com/' })
    registry = new Registry()
    isAway = false
    dispatcher = createTestDispatcher({ ...keeping(), concurrency: CONCURRENCY })
  })
  afterEach(() => dispatcher.stop())

  /** A Temporal that accepts starts once the test releases them. */
  function keeping() {
    const ready = new Promise<void>((resolve) => (release = resolve))
    const workflows = {
      start: () => (isAway ? Promise.reject(new Error('away')) : ready.then(() => true)),
      startFollowing: () => Promise.resolve(true),
      wake: () => Promise.resolve(),
      stop: () => Promise.resolve(),
    }
    const metrics = createMetrics(registry)
    return { rows: testRows(database.dataSource), workflows, logger: silentLogger, metrics }
  }
  const publish = async (count: number) => {
    const published = Array.from({ length: count }, () => publishRow(database.dataSource, organisationId))
    return (await Promise.all(published)).flat()
  }
  const valueOf = async (name: string, labels = {}) =>
    parseExposition(await registry.metrics()).valueOf(name, labels)
  const starts = (result: string) => valueOf('posthorn_dispatched_deliveries_total', { result })

  it('count each start, and show what is queued and in flight', async () => {
    dispatcher.start(await publish(5))
    await eventually(() =>
      expect(dispatcher.load()).to.deep.equal({ queued: 3, startsInFlight: 2, inlineInFlight: 0 }),
    )
    release()
    await eventually(async () => expect(await starts('started')).to.equal(5))
    expect(dispatcher.load()).to.deep.equal({ queued: 0, startsInFlight: 0, inlineInFlight: 0 })
  })

  it('count each refused start, and each delivery that is released without a try', async () => {
    isAway = true
    dispatcher.start(await publish(1))
    await eventually(async () => expect(await starts('refused')).to.equal(1))
    isAway = false
    dispatcher.start(await publish(4))
    await eventually(() =>
      expect(dispatcher.load()).to.deep.equal({ queued: 2, startsInFlight: 2, inlineInFlight: 0 }),
    )
    const stopped = dispatcher.stop()
    release()
    await stopped
    dispatcher.start(await publish(1))
    expect([await starts('started'), await starts('released')]).to.deep.equal([2, 3])
  })

  it('count each swept row, and each pass', async () => {
    registry.clear()
    const dependencies = keeping()
    const rest = { signal: () => Promise.resolve(), start: () => Promise.resolve() }
    const sweep = createSweeper({
      ...dependencies,
      dataSource: database.dataSource,
      retryWorkflows: rest,
      erasureWorkflows: rest,
      incidentWorkflows: rest,
      terminateIfStuck: () => Promise.resolve({ state: 'alive' }),
      isServing: () => true,
      dispatcher,
    })
    const [stopped, late] = await publish(2)
    const due = { workflow: true, sweepInMs: -60_000 }
    await setRow(database.dataSource, stopped!.deliveryId, { state: 'stopped', ...due })
    await setRow(database.dataSource, late!.deliveryId, { state: 'pending', ...due })
    const startedAt = Date.now() / 1_000
    release()
    sweep.start()
    await eventually(async () =>
      expect(await valueOf('posthorn_sweep_duration_seconds_count')).to.be.greaterThan(0),
    )
    await sweep.stop()
    expect(await valueOf('posthorn_sweep_rows_total', { kind: 'delivery' })).to.equal(1)
    expect(await valueOf('posthorn_sweep_rows_total', { kind: 'stopped' })).to.equal(1)
    expect(await valueOf('posthorn_sweep_last_pass_timestamp_seconds')).to.be.at.least(startedAt)
  })
})
