import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { Starter } from '../../../src/delivery/starter.ts'
import { createSweep } from '../../../src/delivery/sweep.ts'
import { createMetrics } from '../../../src/metrics.ts'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import type { DeliveryWorkflows } from '../../../src/temporal/delivery-workflows.ts'
import { useDatabase } from '../../helpers/use-database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createMember, createWebhookRow, publishRow, TEST_PROCESS } from '../../helpers/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { createTestStarter, TEST_LEASE_MS } from '../../helpers/starter.ts'

type Start = { deliveryId: string; next: { number: number; dueAtMs: number | null }; again: boolean }

/** The engine at its typed seam: notes starts; can be away; knows which workflows run. */
function fakeWorkflows() {
  const starts: Start[] = []
  const running = new Set<string>()
  const woken: { deliveryId: string; attempts: number }[] = []
  const stopped: string[] = []
  const engine = { away: false }
  const workflows: DeliveryWorkflows = {
    start({ deliveryId }, next, { again }) {
      if (engine.away) return Promise.reject(new Error('the engine is away'))
      starts.push({ deliveryId, next, again })
      running.add(deliveryId)
      return Promise.resolve()
    },
    follow: () => Promise.resolve(),
    wake: ({ deliveryId }, attempts) => {
      if (engine.away) return Promise.reject(new Error('the engine is away'))
      woken.push({ deliveryId, attempts })
      return Promise.resolve()
    },
    stop: (deliveryId) => {
      if (engine.away) return Promise.reject(new Error('the engine is away'))
      stopped.push(deliveryId)
      return Promise.resolve()
    },
    isRunning: (deliveryId) =>
      engine.away
        ? Promise.reject(new Error('the engine is away'))
        : Promise.resolve(running.has(deliveryId)),
  }
  return { workflows, starts, running, engine, woken, stopped }
}

describe('keeping deliveries', () => {
  const database = useDatabase()
  let organisationId: string
  let fake: ReturnType<typeof fakeWorkflows>
  let starters: Starter[] = []

  beforeEach(async () => {
    await database.dataSource.query('TRUNCATE delivery CASCADE')
    fake = fakeWorkflows()
    organisationId = (await createMember(database.dataSource)).organisationId
    await createWebhookRow(database.dataSource, { organisationId, url: 'https://receiver.example.com/' })
  })

  afterEach(async () => {
    await Promise.all(starters.map((starter) => starter.stop()))
    starters = []
  })

  function process(processId: string = randomUUID()) {
    const { dataSource } = database
    const { workflows } = fake
    const common = { dataSource, workflows, logger: silentLogger, metrics: createMetrics(), processId }
    const starter = createTestStarter(common)
    const sweep = createSweep({
      ...common,
      retryWorkflows: { start: () => Promise.resolve() },
      incidentWorkflows: { tell: () => Promise.resolve() },
      starter,
      leaseMs: TEST_LEASE_MS,
    })
    starters.push(starter)
    return { starter, sweep }
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

  it('starts what this process committed, and notes it', async () => {
    const { starter } = process(TEST_PROCESS)
    starter.start(await publishMany(30))
    await eventually(async () =>
      expect(await rowsWhere('started_at IS NOT NULL AND owner IS NULL')).to.equal(30),
    )
    expect(fake.starts.every(({ next, again }) => next.number === 1 && !again)).to.equal(true)
  })

  it("leaves another living process's deliveries alone", async () => {
    await publishMany(5)
    const { sweep } = process()
    expect(await sweep.runOnce()).to.equal(0)
    expect(fake.starts).to.have.length(0)
  })

  it('starts the deliveries of a process that died once their lease has run out, each once', async () => {
    await publishMany(50, -1)
    const processes = [process(), process(), process()]
    await Promise.all(processes.map(({ sweep }) => sweep.runOnce()))
    await Promise.all(processes.map(({ starter }) => starter.stop()))
    expect(fake.starts).to.have.length(50)
    expect(new Set(fake.starts.map(({ deliveryId }) => deliveryId)).size).to.equal(50)
    expect(await rowsWhere('started_at IS NOT NULL')).to.equal(50)
  })

  it('gives deliveries back while the engine is away, and starts them when it is back', async () => {
    const { starter, sweep } = process(TEST_PROCESS)
    fake.engine.away = true
    starter.start(await publishMany(3))
    await eventually(async () => expect(await rowsWhere('owner IS NULL')).to.equal(3))
    expect(fake.starts).to.have.length(0)
    fake.engine.away = false
    await eventually(async () => {
      await sweep.runOnce()
      expect(fake.starts).to.have.length(3)
    })
  })

  it('gives back at once what it could not start before it was told to stop', async () => {
    const deliveries = await publishMany(20)
    const { starter } = process(TEST_PROCESS)
    starter.start(deliveries)
    await starter.stop()
    const started = fake.starts.length
    expect(await rowsWhere('started_at IS NOT NULL')).to.equal(started)
    expect(await rowsWhere('owner IS NULL AND sweep_at <= now()')).to.equal(20 - started)
  })

  it('starts an overdue delivery again, from the recorded attempt, when its workflow is gone', async () => {
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
      { deliveryId: delivery!.deliveryId, next: { number: 4, dueAtMs: dueAt.getTime() }, again: true },
    ])
    expect(await rowsWhere(`sweep_at > now() + interval '100 s'`)).to.equal(1)
  })

  it('leaves an overdue delivery to its workflow when that is alive, and looks again later', async () => {
    const [delivery] = await publishMany(1)
    fake.running.add(delivery!.deliveryId)
    await change(
      delivery!.deliveryId,
      `state = 'waiting', attempts = 1, started_at = now(), next_attempt_at = now(), sweep_at = now()`,
    )
    const { sweep } = process()
    await sweep.runOnce()
    expect(fake.starts).to.have.length(0)
    expect(await rowsWhere(`sweep_at > now() + interval '100 s'`)).to.equal(1)
  })

  it('loses nobody when the engine cannot tell: it asks again', async () => {
    const [delivery] = await publishMany(1)
    fake.engine.away = true
    await change(
      delivery!.deliveryId,
      `state = 'waiting', attempts = 1, started_at = now(), next_attempt_at = now(), sweep_at = now()`,
    )
    const { sweep } = process()
    await sweep.runOnce()
    expect(await rowsWhere(`sweep_at BETWEEN now() AND now() + interval '20 s'`)).to.equal(1)
  })

  it('never looks at a delivery whose state is final', async () => {
    const deliveries = await publishMany(3, -1)
    const states = ['completed', 'failed', 'stopped']
    await Promise.all(
      deliveries.map(({ deliveryId }, index) =>
        change(deliveryId, `state = '${states[index]!}', sweep_at = NULL`),
      ),
    )
    expect(await process().sweep.runOnce()).to.equal(0)
  })
})
