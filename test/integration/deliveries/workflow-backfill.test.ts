import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createWorkflowBackfill } from '../../../src/deliveries/recovery/workflow-backfill.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { createMember, createWebhookRow } from '../../helpers/database/factories.ts'
import { createFakeTemporal, type FakeTemporal } from '../../helpers/temporal/fake-temporal.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { useDatabase } from '../../helpers/database/use-database.ts'

/** Workflows of one pass. */
const LIMIT = 20

describe('the workflow backfill', () => {
  const database = useDatabase()
  let temporal: FakeTemporal
  const run = <Row>(sql: string, ...parameters: unknown[]): Promise<Row[]> =>
    database.dataSource.query<Row[]>(sql, parameters)

  beforeEach(async () => {
    temporal = createFakeTemporal()
    await run('TRUNCATE delivery CASCADE')
  })

  /** Completed deliveries that are to have a workflow, the oldest first, a second between their ends. */
  async function completed(count: number, oldestAgo = '5 minutes'): Promise<string[]> {
    const { organisationId } = await createMember(database.dataSource)
    const url = 'https://receiver.example.com/'
    const { id: webhookId } = await createWebhookRow(database.dataSource, { organisationId, url })
    await writeBacklog(database.dataSource, { organisationId, webhookId, state: 'failed', count })
    const ids = (
      await run<{ id: string }>('SELECT id FROM delivery WHERE webhook_id = $1 ORDER BY random()', webhookId)
    ).map(({ id }) => id)
    await run(
      `UPDATE delivery d
          SET state = 'completed', attempts = 1, started_at = NULL,
              completed_at = now() - $2::interval + g.place * interval '1 s',
              sweep_at = now() - $2::interval + g.place * interval '1 s'
         FROM unnest($1::uuid[]) WITH ORDINALITY AS g (id, place) WHERE d.id = g.id`,
      ids,
      oldestAgo,
    )
    return ids
  }
  const sleeps: number[] = []
  const backfill = (isIdle: () => boolean = () => true) =>
    createWorkflowBackfill({
      hasRecentDeliveries: () => true,
      sleep: (ms) => Promise.resolve(sleeps.push(ms)),
      dataSource: database.dataSource,
      workflows: temporal.workflows,
      isIdle,
      logger: silentLogger,
      metrics: createMetrics(),
    })
  const count = async (condition: string): Promise<number> =>
    (await run<{ count: number }>(`SELECT count(*)::int AS count FROM delivery WHERE ${condition}`))[0]!.count
  const followedIds = () => temporal.backfilled.map(({ deliveryId }) => deliveryId)

  it('starts a workflow for each completed delivery, from the recorded outcome, and records it', async () => {
    const ids = await completed(20)
    expect(await backfill().runOnce()).to.equal(20)
    expect(followedIds()).to.have.members(ids)
    expect(temporal.backfilled.every(({ attempts }) => attempts === 1)).to.equal(true)
    expect(await count('started_at IS NOT NULL AND sweep_at IS NULL')).to.equal(20)
    expect(await backfill().runOnce()).to.equal(0)
  })

  it('starts with the oldest delivery', async () => {
    const ids = await completed(LIMIT + 10)
    expect(await backfill().runOnce()).to.equal(LIMIT)
    expect(followedIds()).to.have.members(ids.slice(0, LIMIT))
    expect(await backfill().runOnce()).to.equal(10)
    expect(followedIds()).to.have.members(ids)
  })

  it('starts no workflow while deliveries wait', async () => {
    await completed(5)
    expect(await backfill(() => false).runOnce()).to.equal(0)
    expect(await count('sweep_at < now()')).to.equal(5)
  })

  it('stops in the middle when deliveries arrive, and continues later', async () => {
    const ids = await completed(20)
    let looks = 0
    await backfill(() => ++looks <= 6).runOnce()
    const first = temporal.backfilled.length
    expect(first).to.be.within(1, 10)
    expect(await count(`sweep_at BETWEEN now() + interval '20 s' AND now() + interval '31 s'`)).to.equal(
      20 - first,
    )
    await run(`UPDATE delivery SET sweep_at = now() - interval '1 ms' WHERE sweep_at IS NOT NULL`)
    await backfill().runOnce()
    expect(temporal.backfilled).to.have.length(20)
    expect(followedIds()).to.have.members(ids)
  })

  it('drops deliveries that were completed more than an hour ago', async () => {
    await completed(5, '62 minutes')
    const young = await completed(3, '58 minutes')
    const never = backfill(() => false)
    expect(await never.runOnce()).to.equal(0)
    expect(await count('sweep_at IS NULL')).to.equal(5)
    expect(await backfill().runOnce()).to.equal(3)
    expect(followedIds()).to.have.members(young)
    expect(await count('sweep_at IS NULL')).to.equal(8)
    expect(await count('started_at IS NULL')).to.equal(5)
  })

  it('starts one workflow at a time, and sleeps four times as long as a start takes while deliveries arrive', async () => {
    await completed(3)
    sleeps.length = 0
    let [inFlight, most] = [0, 0]
    const { workflows } = temporal
    const startBackfill: typeof workflows.startBackfill = (...args) => workflows.startBackfill(...args)
    const counted: typeof startBackfill = async (...args) => {
      most = Math.max(most, ++inFlight)
      await delay(20)
      inFlight--
      return startBackfill(...args)
    }
    temporal.workflows = { ...workflows, startBackfill: counted }
    await backfill().runOnce()
    expect([most, sleeps.length]).to.deep.equal([1, 3])
    for (const ms of sleeps) expect(ms).to.be.at.least(4 * 18)
  })

  it('is owed while the last pass found deliveries', async () => {
    await completed(1)
    const one = backfill()
    expect(one.isPending()).to.equal(false)
    await one.runOnce()
    expect(one.isPending()).to.equal(true)
    await one.runOnce()
    expect(one.isPending()).to.equal(false)
  })

  it('retries later when Temporal is unavailable', async () => {
    const ids = await completed(10)
    temporal.isUnavailable = true
    expect(await backfill().runOnce()).to.equal(0)
    expect(await count(`started_at IS NULL AND sweep_at < now() + interval '31 s'`)).to.equal(10)
    temporal.isUnavailable = false
    await run(`UPDATE delivery SET sweep_at = now() - interval '1 ms'`)
    expect(await backfill().runOnce()).to.equal(10)
    expect(followedIds()).to.have.members(ids)
  })

  it('never takes a delivery in two processes', async () => {
    const ids = await completed(4 * LIMIT)
    const processes = [backfill(), backfill(), backfill()]
    for (;;) {
      const counts = await Promise.all(processes.map((process) => process.runOnce()))
      if (counts.every((started) => started === 0)) break
    }
    expect(temporal.backfilled).to.have.length(ids.length)
    expect(followedIds()).to.have.members(ids)
  })

  it('skips deliveries that are not completed or have a workflow', async () => {
    const ids = await completed(4)
    const states = ['pending', 'in_progress', 'waiting', 'stopped']
    for (const [index, state] of states.entries())
      await run('UPDATE delivery SET state = $2, completed_at = NULL WHERE id = $1', ids[index], state)
    expect(await backfill().runOnce()).to.equal(0)
    await run(`UPDATE delivery SET state = 'completed', completed_at = now(), sweep_at = NULL`)
    expect(await backfill().runOnce()).to.equal(0)
  })
})
