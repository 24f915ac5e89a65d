import { expect } from 'chai'
import { createFollowingWorkflows } from '../../../src/deliveries/recovery/following-workflows.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import type { Timers } from '../../../src/timers.ts'
import { testRows } from '../../helpers/deliveries/dispatcher.ts'
import { setRow, type RowState } from '../../helpers/deliveries/set-row.ts'
import { useRows } from '../../helpers/deliveries/use-rows.ts'
import { createFakeTemporal, type FakeTemporal } from '../../helpers/temporal/fake-temporal.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

/** Workflows of one pass. */
const LIMIT = 20

describe('workflows that follow', () => {
  const suite = useRows()
  let temporal: FakeTemporal
  let sleeps: number[]
  /** Passes only where a test says so. */
  let nowMs: number
  const run = <Row>(sql: string, ...parameters: unknown[]): Promise<Row[]> =>
    suite.database.dataSource.query<Row[]>(sql, parameters)

  beforeEach(async () => {
    temporal = createFakeTemporal()
    sleeps = []
    nowMs = 0
    await run('TRUNCATE delivery CASCADE')
  })

  /** Deliveries that ended without a workflow, the oldest first, a second between their ends. */
  async function owed(count: number, to: RowState = { state: 'completed' }): Promise<string[]> {
    const webhook = await suite.webhook()
    const ids: string[] = []
    for (let index = 0; index < count; index++) {
      const { deliveryId } = await suite.publish(webhook)
      ids.push(deliveryId)
      await setRow(suite.database.dataSource, deliveryId, {
        ...to,
        sweepInMs: -1_000 * (count - index) - 7_200_000,
      })
    }
    return ids
  }
  /** Timers that note how long is slept, and do not sleep. */
  const timers: Timers = {
    nowMs: () => nowMs,
    after(ms, next) {
      sleeps.push(ms)
      setImmediate(next)
      return () => undefined
    },
  }
  type Options = Parameters<typeof createFollowingWorkflows>[0]
  const following = ({
    dispatcher,
    ...options
  }: Partial<Omit<Options, 'dispatcher'>> & { dispatcher?: Partial<Options['dispatcher']> } = {}) =>
    createFollowingWorkflows({
      rows: testRows(suite.database.dataSource),
      workflows: temporal.workflows,
      isServing: () => true,
      dispatcher: {
        isQuiet: () => true,
        hasRecentDeliveries: () => true,
        followingOwed: () => undefined,
        ...dispatcher,
      },
      logger: silentLogger,
      metrics: createMetrics(),
      timers,
      ...options,
    })
  const count = async (condition: string): Promise<number> =>
    (await run<{ count: number }>(`SELECT count(*)::int AS count FROM delivery WHERE ${condition}`))[0]!.count
  const followedIds = () => temporal.followed.map(({ deliveryId }) => deliveryId)

  for (const to of [{ state: 'completed' }, { state: 'failed' }, { state: 'stopped', attempts: 1 }] as const)
    it(`start for each ${to.state} delivery that was attempted without one, the oldest first, and are noted`, async () => {
      const ids = await owed(LIMIT + 3, to)
      expect(await following().runOnce()).to.equal(LIMIT)
      expect(followedIds()).to.deep.equal(ids.slice(0, LIMIT))
      expect(await count('workflow_started_at IS NOT NULL AND sweep_at IS NULL')).to.equal(LIMIT)
      expect(await following().runOnce()).to.equal(3)
      expect(await following().runOnce()).to.equal(0)
      expect(followedIds()).to.deep.equal(ids)
    })

  it('start one at a time, and sleep four times as long as a start takes while deliveries arrive', async () => {
    await owed(3)
    let [inFlight, most] = [0, 0]
    const startFollowing: FakeTemporal['workflows']['startFollowing'] = async (...args) => {
      most = Math.max(most, ++inFlight)
      await new Promise(setImmediate)
      nowMs += 20
      inFlight--
      return temporal.workflows.startFollowing(...args)
    }
    await following({ workflows: { startFollowing } }).runOnce()
    expect([most, sleeps]).to.deep.equal([1, [80, 80, 80]])
  })

  it('start more than twice a second under any load', async () => {
    await owed(3)
    const startsTakeMs = [0, 150, 600]
    const startFollowing: FakeTemporal['workflows']['startFollowing'] = (...args) => {
      nowMs += startsTakeMs[temporal.followed.length] ?? 0
      return temporal.workflows.startFollowing(...args)
    }
    const busy = { dispatcher: { isQuiet: () => false }, workflows: { startFollowing } }
    expect(await following(busy).runOnce()).to.equal(3)
    expect(sleeps).to.deep.equal([400, 250, 0])
  })

  it('are owed while the last pass found deliveries', async () => {
    await owed(1)
    const noted: boolean[] = []
    const one = following({ dispatcher: { followingOwed: (isOwed) => void noted.push(isOwed) } })
    await one.runOnce()
    await one.runOnce()
    expect(noted).to.deep.equal([true, false])
  })

  it('are tried again later when Temporal is unavailable, however old they are', async () => {
    const ids = await owed(10)
    temporal.isUnavailable = true
    expect(await following().runOnce()).to.equal(0)
    expect(await count(`workflow_started_at IS NULL AND sweep_at < now() + interval '31 s'`)).to.equal(10)
    temporal.isUnavailable = false
    await run(`UPDATE delivery SET sweep_at = delivery_now() - interval '30 days'`)
    expect(await following().runOnce()).to.equal(10)
    expect(followedIds()).to.have.members(ids)
  })

  it('are started by one process each', async () => {
    const ids = await owed(2 * LIMIT)
    const processes = [following(), following(), following()]
    for (let pass = 0; pass < 6; pass++) await Promise.all(processes.map((process) => process.runOnce()))
    expect(temporal.followed).to.have.length(ids.length)
    expect(followedIds()).to.have.members(ids)
  })

  it('are not started for a delivery that has one, that owes none, or that is not final', async () => {
    const ids = await owed(4)
    await setRow(suite.database.dataSource, ids[0]!, {
      state: 'completed',
      workflow: true,
      sweepInMs: -1_000,
    })
    await setRow(suite.database.dataSource, ids[1]!, { state: 'completed', sweepInMs: null })
    await setRow(suite.database.dataSource, ids[2]!, { state: 'pending', sweepInMs: -1_000 })
    await setRow(suite.database.dataSource, ids[3]!, { state: 'waiting', sweepInMs: -1_000 })
    expect(await following().runOnce()).to.equal(0)
  })
})
