import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { Dispatcher } from '../../../src/deliveries/dispatch/dispatcher.ts'
import { createSweeper } from '../../../src/deliveries/recovery/sweeper.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import type { DeliveryWorkflows } from '../../../src/temporal/delivery-workflows.ts'
import { TemporalUnavailableError } from '../../../src/temporal/unavailable.ts'
import type { TerminateIfStuck } from '../../../src/temporal/workflow-progress.ts'
import { useDatabase } from '../../helpers/database/use-database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createMember, createWebhookRow, publishRow, TEST_PROCESS } from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { createTestDispatcher, TEST_LEASE_MS } from '../../helpers/deliveries/dispatcher.ts'

type Start = { deliveryId: string; next: { number: number; dueAtMs: number | null }; allowRestart: boolean }

/** Temporal at its typed seam: notes starts; can be away; knows which workflows run. */
function fakeWorkflows() {
  const starts: Start[] = []
  const running = new Set<string>()
  const woken: { deliveryId: string; attempts: number }[] = []
  const stopped: string[] = []
  const stuck = new Set<string>()
  /** Ids of the workflows that Temporal was asked about. */
  const asked: string[] = []
  const temporal = { isUnavailable: false }
  const workflows: DeliveryWorkflows = {
    start({ deliveryId }, next, { allowRestart }) {
      if (temporal.isUnavailable)
        return Promise.reject(new TemporalUnavailableError('Temporal is unavailable'))
      if (allowRestart && running.has(deliveryId)) return Promise.resolve(false)
      starts.push({ deliveryId, next, allowRestart })
      running.add(deliveryId)
      return Promise.resolve(true)
    },
    startBackfill: () => Promise.resolve(),
    wake: ({ deliveryId }, attempts) => {
      if (temporal.isUnavailable)
        return Promise.reject(new TemporalUnavailableError('Temporal is unavailable'))
      woken.push({ deliveryId, attempts })
      return Promise.resolve()
    },
    stop: (deliveryId) => {
      if (temporal.isUnavailable)
        return Promise.reject(new TemporalUnavailableError('Temporal is unavailable'))
      stopped.push(deliveryId)
      return Promise.resolve()
    },
  }
  const terminateIfStuck: TerminateIfStuck = (workflowId) => {
    if (temporal.isUnavailable) return Promise.reject(new TemporalUnavailableError('Temporal is unavailable'))
    asked.push(workflowId)
    const deliveryId = workflowId.replace('delivery/', '')
    if (stuck.delete(deliveryId) && running.delete(deliveryId))
      return Promise.resolve({ state: 'stuck', runId: 'run', taskAttempts: 3, cause: 'non_determinism' })
    return Promise.resolve({ state: running.has(deliveryId) ? 'alive' : 'gone' })
  }
  return { workflows, terminateIfStuck, starts, running, stuck, asked, temporal, woken, stopped }
}

describe('delivery leases', () => {
  const database = useDatabase()
  let organisationId: string
  let fake: ReturnType<typeof fakeWorkflows>
  let starters: Dispatcher[] = []

  beforeEach(async () => {
    await database.dataSource.query('TRUNCATE delivery CASCADE')
    fake = fakeWorkflows()
    organisationId = (await createMember(database.dataSource)).organisationId
    await createWebhookRow(database.dataSource, { organisationId, url: 'https://receiver.example.com/' })
  })

  afterEach(async () => {
    await Promise.all(starters.map((dispatcher) => dispatcher.stop()))
    starters = []
  })

  function process(processId: string = randomUUID(), options: { isServing?: () => boolean } = {}) {
    const { dataSource } = database
    const { workflows, terminateIfStuck } = fake
    const { isServing = () => true } = options
    const common = { dataSource, workflows, logger: silentLogger, metrics: createMetrics(), processId }
    const dispatcher = createTestDispatcher(common)
    const sweep = createSweeper({
      ...common,
      retryWorkflows: { start: () => Promise.resolve() },
      erasureWorkflows: { start: () => Promise.resolve() },
      incidentWorkflows: { signal: () => Promise.resolve() },
      terminateIfStuck,
      isServing,
      attemptsInline: false,
      overdueAttempts: null,
      dispatcher,
      leaseMs: TEST_LEASE_MS,
    })
    starters.push(dispatcher)
    return { dispatcher, sweep }
  }
  const publishMany = async (count: number, leaseMs?: number): Promise<DeliveryToStart[]> => {
    const published = await Promise.all(
      Array.from({ length: count }, () =>
        publishRow(database.dataSource, organisationId, leaseMs === undefined ? {} : { leaseMs }),
      ),
    )
    return published.flat()
  }
  const rowsWhere = async (condition: string): Promise<number> => {
    const [row] = await database.dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM delivery WHERE ${condition}`,
    )
    return row!.count
  }
  const change = (id: string, assignments: string) =>
    database.dataSource.query(`UPDATE delivery SET ${assignments} WHERE id = $1`, [id])

  it('starts the deliveries that this process committed, and records the starts', async () => {
    const { dispatcher } = process(TEST_PROCESS)
    dispatcher.start(await publishMany(30))
    await eventually(async () =>
      expect(await rowsWhere('started_at IS NOT NULL AND owner IS NULL')).to.equal(30),
    )
    expect(fake.starts.every(({ next, allowRestart }) => next.number === 1 && !allowRestart)).to.equal(true)
  })

  it('does not take deliveries that another running process leases', async () => {
    await publishMany(5)
    const { sweep } = process()
    await sweep.runOnce()
    expect(fake.starts).to.have.length(0)
    expect(await rowsWhere(`owner = '${TEST_PROCESS}'`)).to.equal(5)
  })

  it('starts the deliveries of a dead process once when their leases expire', async () => {
    await publishMany(50, -1)
    const processes = [process(), process(), process()]
    await Promise.all(processes.map(({ sweep }) => sweep.runOnce()))
    await eventually(() => expect(fake.starts).to.have.length(50))
    await Promise.all(processes.map(({ dispatcher }) => dispatcher.stop()))
    expect(fake.starts).to.have.length(50)
    expect(new Set(fake.starts.map(({ deliveryId }) => deliveryId)).size).to.equal(50)
    expect(await rowsWhere('started_at IS NOT NULL')).to.equal(50)
  })

  it('releases deliveries while Temporal is unavailable, and starts them when it is back', async () => {
    const { dispatcher, sweep } = process(TEST_PROCESS)
    fake.temporal.isUnavailable = true
    dispatcher.start(await publishMany(3))
    await eventually(async () => expect(await rowsWhere('owner IS NULL')).to.equal(3))
    expect(fake.starts).to.have.length(0)
    fake.temporal.isUnavailable = false
    await eventually(async () => {
      await sweep.runOnce()
      expect(fake.starts).to.have.length(3)
    })
  })

  it('releases unstarted deliveries at once on shutdown', async () => {
    const deliveries = await publishMany(20)
    const { dispatcher } = process(TEST_PROCESS)
    dispatcher.start(deliveries)
    await dispatcher.stop()
    const started = fake.starts.length
    expect(await rowsWhere('started_at IS NOT NULL')).to.equal(started)
    expect(await rowsWhere('owner IS NULL AND sweep_at <= now()')).to.equal(20 - started)
  })

  it('restarts an overdue delivery from the recorded attempt when its workflow is gone', async () => {
    const [delivery] = await publishMany(1)
    const dueAt = new Date(Date.now() - 120_000)
    await database.dataSource.query(
      `UPDATE delivery SET state = 'waiting', attempts = 3, started_at = now(), owner = NULL, lease_until = NULL,
              next_attempt_at = $2, sweep_at = now() WHERE id = $1`,
      [delivery!.deliveryId, dueAt],
    )
    const { sweep } = process()
    await sweep.runOnce()
    expect(fake.starts).to.deep.equal([
      { deliveryId: delivery!.deliveryId, next: { number: 4, dueAtMs: dueAt.getTime() }, allowRestart: true },
    ])
    expect(await rowsWhere(`sweep_at BETWEEN now() + interval '14 s' AND now() + interval '16 s'`)).to.equal(
      1,
    )
  })

  it('leaves an overdue delivery to its running workflow, and checks again later', async () => {
    const [delivery] = await publishMany(1)
    fake.running.add(delivery!.deliveryId)
    await change(
      delivery!.deliveryId,
      `state = 'waiting', attempts = 1, started_at = now(), next_attempt_at = now(), sweep_at = now()`,
    )
    const { sweep } = process()
    await sweep.runOnce()
    expect(fake.starts).to.have.length(0)
    expect(await rowsWhere(`sweep_at BETWEEN now() + interval '14 s' AND now() + interval '16 s'`)).to.equal(
      1,
    )
  })

  const overdue = (id: string, since: string) =>
    change(
      id,
      `state = 'waiting', attempts = 1, started_at = now(), owner = NULL, lease_until = NULL,
       next_attempt_at = now() - interval '${since}', sweep_at = now()`,
    )

  it('checks a late delivery at growing intervals', async () => {
    for (const [since, from, to] of [
      ['20 s', '14 s', '16 s'],
      ['2 minutes', '58 s', '62 s'],
      ['3 hours', '298 s', '302 s'],
    ] as const) {
      await database.dataSource.query('TRUNCATE delivery CASCADE')
      const [delivery] = await publishMany(1)
      fake.running.add(delivery!.deliveryId)
      await overdue(delivery!.deliveryId, since)
      await process().sweep.runOnce()
      const again = `sweep_at BETWEEN now() + interval '${from}' AND now() + interval '${to}'`
      expect(await rowsWhere(again), since).to.equal(1)
    }
    expect(fake.starts).to.have.length(0)
  })

  it('describes at most fifty overdue deliveries per pass', async () => {
    for (const { deliveryId } of await publishMany(70)) {
      fake.running.add(deliveryId)
      await overdue(deliveryId, '1 minute')
    }
    const { sweep } = process()
    expect(await sweep.runOnce()).to.equal(50)
    expect(fake.asked).to.have.length(50)
    await sweep.runOnce()
    expect(new Set(fake.asked).size).to.equal(70)
  })

  it('replaces a stuck workflow from the recorded attempt', async () => {
    const [delivery] = await publishMany(1)
    const { deliveryId } = delivery!
    fake.running.add(deliveryId)
    fake.stuck.add(deliveryId)
    await overdue(deliveryId, '20 s')
    await process().sweep.runOnce()
    expect(fake.starts.map(({ next, allowRestart }) => [next.number, allowRestart])).to.deep.equal([
      [2, true],
    ])
  })

  it('releases at once what it could not recover, for any process', async () => {
    const [delivery] = await publishMany(1)
    fake.temporal.isUnavailable = true
    await overdue(delivery!.deliveryId, '20 s')
    await process().sweep.runOnce()
    expect(await rowsWhere(`sweep_at BETWEEN now() AND now() + interval '4 s'`)).to.equal(1)
  })

  it('takes no deliveries that need Temporal while this process cannot reach it', async () => {
    const [unstarted, started, stopped] = await publishMany(3, -1)
    await overdue(started!.deliveryId, '20 s')
    await change(stopped!.deliveryId, `state = 'stopped', sweep_at = now() - interval '1 s'`)
    await process(randomUUID(), { isServing: () => false }).sweep.runOnce()
    expect([fake.starts, fake.asked, fake.stopped]).to.deep.equal([[], [], []])
    expect(await rowsWhere('sweep_at <= now()')).to.equal(3)
    await process().sweep.runOnce()
    await eventually(() =>
      expect(new Set(fake.starts.map(({ deliveryId }) => deliveryId))).to.deep.equal(
        new Set([unstarted!.deliveryId, started!.deliveryId]),
      ),
    )
    expect(fake.stopped).to.deep.equal([stopped!.deliveryId])
  })

  it('recovers deliveries webhook by webhook, however many wait for one', async () => {
    await publishMany(400, -1)
    const other = await createWebhookRow(database.dataSource, {
      organisationId,
      url: 'https://other.example.com/',
      subscribedEventKeys: ['comment:created'],
    })
    const crowd = fake.starts
    const published = await publishRow(database.dataSource, organisationId, {
      eventKey: 'comment:created',
      leaseMs: -1,
    })
    const { deliveryId } = published.find(({ webhookId }) => webhookId === other.id)!
    await process().sweep.runOnce()
    await eventually(() => expect(crowd.map((start) => start.deliveryId)).to.include(deliveryId))
    expect(crowd).to.have.length.below(200)
  })

  it('recovers some deliveries of each webhook even while this process is busy', async () => {
    const processId = randomUUID()
    const { dispatcher, sweep } = process(processId)
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    fake.workflows.start = () => released.then(() => true)
    dispatcher.start(await publishMany(300))
    const isBusy = dispatcher.isBusy()
    await publishMany(30, -1)
    await sweep.runOnce()
    release()
    expect(isBusy).to.equal(true)
    expect(await rowsWhere(`owner = '${processId}'`)).to.equal(20)
  })

  it('never sweeps a delivery in a final state', async () => {
    const deliveries = await publishMany(3, -1)
    const states = ['completed', 'failed', 'stopped']
    await Promise.all(
      deliveries.map(({ deliveryId }, index) =>
        change(deliveryId, `state = '${states[index]!}', sweep_at = NULL`),
      ),
    )
    await process().sweep.runOnce()
    expect([fake.starts, fake.asked]).to.deep.equal([[], []])
  })
})
