import { expect } from 'chai'
import { createDeliveryRecovery } from '../../../src/deliveries/recovery/recover-deliveries.ts'
import { createSweeper } from '../../../src/deliveries/recovery/sweeper.ts'
import type { Dispatcher } from '../../../src/deliveries/dispatch/dispatcher.ts'
import { requestRetries } from '../../../src/deliveries/protocol/change-deliveries.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createTestDispatcher, testRows } from '../../helpers/deliveries/dispatcher.ts'
import { useRows } from '../../helpers/deliveries/use-rows.ts'
import { eventually } from '../../helpers/eventually.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { createFakeTemporal, type FakeTemporal } from '../../helpers/temporal/fake-temporal.ts'

describe('the recovery of deliveries', () => {
  const suite = useRows()
  let fake: FakeTemporal
  let dispatchers: Dispatcher[] = []

  beforeEach(async () => {
    await suite.database.dataSource.query('TRUNCATE delivery CASCADE')
    fake = createFakeTemporal()
  })

  afterEach(async () => {
    await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()))
    dispatchers = []
  })

  function process({ isServing = () => true }: { isServing?: () => boolean } = {}) {
    const { dataSource } = suite.database
    const rows = testRows(dataSource)
    const dispatcher = createTestDispatcher({ rows, workflows: fake.workflows, isServing })
    const dependencies = {
      dataSource,
      rows,
      workflows: fake.workflows,
      logger: silentLogger,
      metrics: createMetrics(),
      retryWorkflows: { start: () => Promise.resolve() },
      erasureWorkflows: { start: () => Promise.resolve() },
      incidentWorkflows: { signal: () => Promise.resolve() },
      terminateIfStuck: fake.terminateIfStuck,
      isServing,
      dispatcher,
    }
    dispatchers.push(dispatcher)
    const sweep = createSweeper(dependencies)
    return { dispatcher, sweep, parts: createDeliveryRecovery(dependencies) }
  }
  const count = async (condition: string): Promise<number> => {
    const [row] = await suite.database.dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM delivery WHERE ${condition}`,
    )
    return row!.count
  }
  const sweptIn = (fromS: number, toS: number): Promise<number> =>
    count(`sweep_at BETWEEN now() + interval '${fromS} s' AND now() + interval '${toS} s'`)

  /** A waiting delivery with a workflow whose next attempt was due so long ago. */
  const overdue = (byMs: number, webhook?: Parameters<typeof suite.deliveryIn>[1], attempts = 1) =>
    suite.deliveryIn({ state: 'waiting', attempts, dueInMs: -byMs, workflow: true, sweepInMs: -1 }, webhook)

  it('starts the workflows of pending deliveries once, by one of several processes', async () => {
    const webhook = await suite.webhook()
    for (let index = 0; index < 50; index++)
      await suite.deliveryIn({ state: 'pending', sweepInMs: -1 }, webhook)
    const processes = [process(), process(), process()]
    await Promise.all(processes.map(({ dispatcher }) => dispatcher.pull()))
    await eventually(() => expect(fake.starts).to.have.length(50))
    await Promise.all(processes.map(({ dispatcher }) => dispatcher.stop()))
    expect(new Set(fake.starts.map(({ deliveryId }) => deliveryId)).size).to.equal(50)
    expect(await count('workflow_started_at IS NOT NULL')).to.equal(50)
  })

  it('leaves deliveries to the process that is about to start them, or has them in progress', async () => {
    const webhook = await suite.webhook()
    await suite.deliveryIn({ state: 'pending' }, webhook)
    await suite.deliveryIn({ state: 'in_progress' }, webhook)
    await process().dispatcher.pull()
    expect(fake.starts).to.deep.equal([])
  })

  it('gives back at once, on shutdown, what it has not started', async () => {
    const webhook = await suite.webhook()
    const deliveries = []
    for (let index = 0; index < 20; index++) deliveries.push(await suite.publish(webhook))
    const { dispatcher } = process()
    dispatcher.start(deliveries)
    await dispatcher.stop()
    const started = fake.starts.length
    expect(await count('workflow_started_at IS NOT NULL')).to.equal(started)
    expect(await count('workflow_started_at IS NULL AND sweep_at <= now()')).to.equal(20 - started)
  })

  it('restarts an overdue delivery from the recorded attempt when its workflow is gone', async () => {
    const delivery = await overdue(120_000, undefined, 3)
    const dueAtMs = (await suite.row(delivery)).next_attempt_at!.getTime()
    await process().sweep.runOnce()
    const { deliveryId } = delivery
    expect(fake.starts.map(({ next, ...of }) => [of.deliveryId, next])).to.deep.equal([
      [deliveryId, { number: 4, dueAtMs, waitMs: 0 }],
    ])
    expect(await sweptIn(5, 16)).to.equal(1)
  })

  it('replaces a stuck workflow from the recorded attempt', async () => {
    const { deliveryId } = await overdue(20_000)
    fake.running.add(deliveryId)
    fake.stuck.add(deliveryId)
    await process().sweep.runOnce()
    expect(fake.starts.map(({ next }) => next.number)).to.deep.equal([2])
  })

  it('leaves a late delivery to its running workflow, and checks it at growing intervals', async () => {
    for (const [byMs, from, to] of [
      [20_000, 5, 16],
      [120_000, 30, 75],
      [3 * 3_600_000, 150, 302],
    ] as const) {
      await suite.database.dataSource.query('TRUNCATE delivery CASCADE')
      fake.running.add((await overdue(byMs)).deliveryId)
      await process().sweep.runOnce()
      expect(await sweptIn(from, to), `${byMs} ms late`).to.equal(1)
    }
    expect(fake.starts).to.have.length(0)
  })

  it('signals a requested retry to its running workflow at the same intervals', async () => {
    const delivery = await overdue(60_000)
    const { organisationId, webhookId, deliveryId } = delivery
    fake.running.add(deliveryId)
    const { dataSource } = suite.database
    await requestRetries(dataSource, { organisationId, webhookId, ids: [deliveryId], states: ['waiting'] })
    const { sweep } = process()
    for (const [sinceS, from, to] of [
      [20, 5, 16],
      [240, 70, 135],
    ] as const) {
      await dataSource.query(
        `UPDATE delivery SET next_attempt_at = delivery_now() - $1 * interval '1 s',
                sweep_at = delivery_now() - interval '1 ms'`,
        [sinceS],
      )
      await sweep.runOnce()
      expect(await sweptIn(from, to), `${sinceS} s late`).to.equal(1)
    }
    expect(fake.woken).to.deep.equal([deliveryId, deliveryId])
  })

  it('describes at most fifty overdue deliveries per pass', async () => {
    const webhook = await suite.webhook()
    for (let index = 0; index < 70; index++) fake.running.add((await overdue(60_000, webhook)).deliveryId)
    const { sweep } = process()
    expect(await sweep.runOnce()).to.equal(50)
    expect(fake.described).to.have.length(50)
    await sweep.runOnce()
    expect(new Set(fake.described).size).to.equal(70)
  })

  /** Inserts `times` further deliveries like this one. */
  const repeat = ({ deliveryId }: { deliveryId: string }, times: number): Promise<unknown> =>
    suite.database.dataSource.query(
      `INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, stop_reason, attempts, next_attempt_at,
                             completed_at, sweep_at, workflow_started_at)
       SELECT uuidv7(), event_id, webhook_id, organisation_id, state, stop_reason, attempts, next_attempt_at,
              completed_at, sweep_at, workflow_started_at
         FROM delivery, generate_series(1, $2) WHERE id = $1`,
      [deliveryId, times],
    )

  it('repeats no full pass at once whose calls are refused', async () => {
    await repeat(await overdue(20_000), 49)
    await repeat(await suite.deliveryIn({ state: 'stopped', workflow: true, sweepInMs: -1 }), 199)
    fake.isUnavailable = true
    const { parts } = process()
    expect(await Promise.all(parts.map((part) => part()))).to.deep.equal([
      { count: 50, isMoreWaiting: false },
      { count: 200, isMoreWaiting: false },
    ])
  })

  it('finds a lost workflow in its first pass, however many deliveries of another webhook are late', async () => {
    await repeat(await overdue(3_600_000), 20_000)
    const lost = await overdue(20_000)
    await process().sweep.runOnce()
    expect(fake.described).to.include(lost.deliveryId)
    expect(fake.described).to.have.length(50)
  })

  it('gives back at once what it could not recover, for any process', async () => {
    const overdueOne = await overdue(20_000)
    const { sweep_at: before } = await suite.row(overdueOne)
    fake.isUnavailable = true
    await process().sweep.runOnce()
    const { sweep_at: after } = await suite.row(overdueOne)
    expect(after!.getTime()).to.be.above(before!.getTime())
    expect(await sweptIn(-30, 4)).to.equal(1)
  })

  it('signals the workflows of deliveries that ended without them, once', async () => {
    const { deliveryId } = await suite.deliveryIn({ state: 'stopped', workflow: true, sweepInMs: -1 })
    await suite.deliveryIn({ state: 'completed', workflow: true })
    await suite.deliveryIn({ state: 'completed', workflow: false, sweepInMs: -1 })
    const { sweep } = process()
    await sweep.runOnce()
    await sweep.runOnce()
    expect(fake.stopped).to.deep.equal([deliveryId])
    expect(await count('sweep_at IS NULL')).to.equal(2)
  })

  it('takes nothing while this process cannot reach Temporal', async () => {
    await suite.deliveryIn({ state: 'pending', sweepInMs: -1 })
    await overdue(20_000)
    await suite.deliveryIn({ state: 'stopped', workflow: true, sweepInMs: -1 })
    const away = process({ isServing: () => false })
    await Promise.all([away.sweep.runOnce(), away.dispatcher.pull()])
    expect([fake.starts, fake.described, fake.stopped]).to.deep.equal([[], [], []])
    expect(await count('sweep_at <= now()')).to.equal(3)
  })

  it('stops a delivery whose run was lost and whose webhook does not take it any more', async () => {
    const delivery = await suite.deliveryIn({ state: 'in_progress', leaseMs: -1 })
    await suite.change(delivery.webhookId, 'enabled = false')
    const { dataSource } = suite.database
    const run = { ...delivery, number: 1, owner: delivery.deliveryId, isWorkflow: false }
    expect(await testRows(dataSource).claim([run])).to.deep.equal([null])
    await eventually(async () =>
      expect(await suite.row(delivery)).to.include({ state: 'stopped', stop_reason: 'webhook_disabled' }),
    )
  })
})
