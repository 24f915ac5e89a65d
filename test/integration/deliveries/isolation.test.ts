import { expect } from 'chai'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoint-registry.ts'
import { endAttempts } from '../../helpers/deliveries/dispatcher.ts'
import { eventually } from '../../helpers/eventually.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

/** Deliveries of one webhook that are with Temporal at once, and of one that is failing in memory. */
const WITH_ENGINE = 10
const IN_MEMORY = 20

describe('a backlog of 1,000 for a failing webhook', () => {
  const suite = useInlineAttempts()

  async function backlog(mode: 'workflow' | 'overflow' | 'direct') {
    const [failing, healthy] = [await suite.endpoint(() => 500), await suite.endpoint()]
    suite.process({ mode: 'direct' }).dispatcher.start(await failing.publish(1))
    await eventually(async () => expect(await suite.count(`state = 'waiting'`)).to.equal(1))
    const endpoints = createEndpoints({ maxLimit: WITH_ENGINE, initialLimit: WITH_ENGINE })
    const made = suite.process({ mode, attempts: { endpoints } })
    made.dispatcher.start(await failing.publish(1_000))
    const starts = () => suite.temporal.starts.filter(({ next }) => next.number === 1)
    await eventually(() => {
      expect(starts()).to.have.length(WITH_ENGINE)
      expect(made.dispatcher.load()).to.include({ startsInFlight: 0 })
    })
    const { queued: waiting } = made.dispatcher.load()
    return { ...made, failing, healthy, starts, waiting }
  }

  for (const mode of ['workflow', 'overflow', 'direct'] as const) {
    it(`keeps to its share of Temporal and of the memory in \`${mode}\`; the rest waits in the database`, async () => {
      const { dispatcher, failing, starts, waiting } = await backlog(mode)
      expect(waiting).to.be.within(1, IN_MEMORY)
      expect(
        starts().every(({ webhookId, kind }) => webhookId === failing.webhookId && kind !== 'first'),
      ).to.equal(true)
      const returned = `state = 'pending' AND owner IS NULL AND started_at IS NULL
        AND sweep_at < now() + interval '4 s'`
      await eventually(async () =>
        expect(await suite.count(returned)).to.equal(1_000 - WITH_ENGINE - waiting),
      )
      expect(dispatcher.isBusy()).to.equal(false)
      expect(failing.receiver.posts).to.have.length(1)
    })

    it(`delays no delivery of other webhooks in \`${mode}\`, and no sweep`, async () => {
      const { dispatcher, sweep, healthy } = await backlog(mode)
      const [fresh, abandoned] = [await healthy.publishOne(), await healthy.publishOne({ leaseMs: -1 })]
      dispatcher.start([fresh])
      await sweep.runOnce()
      for (const { deliveryId } of [fresh, abandoned])
        await eventually(() => {
          const isBegun = [...healthy.receiver.postsOf(deliveryId), ...suite.temporal.startsOf(deliveryId)]
          expect(isBegun).to.have.length(1)
        }, 2_000)
    })
  }

  it('delays no backfill, however often its remaining deliveries are swept', async () => {
    const { dispatcher, sweep, waiting } = await backlog('overflow')
    const returned = `state = 'pending' AND owner IS NULL AND started_at IS NULL`
    await eventually(async () => expect(await suite.count(returned)).to.equal(1_000 - WITH_ENGINE - waiting))
    // What came at once has been forgotten by then.
    await eventually(() => expect(dispatcher.isIdle()).to.equal(true), 3_000)
    // Half a minute later, and again as long as the endpoint hangs.
    await suite.database.dataSource.query(
      `UPDATE delivery SET sweep_at = now() - interval '1 ms' WHERE ${returned}`,
    )
    expect(await sweep.runOnce()).to.be.at.most(IN_MEMORY)
    expect(dispatcher.load().queued).to.be.at.most(IN_MEMORY)
    expect(dispatcher.isIdle()).to.equal(true)
  })

  it('rewrites no row without capacity, and takes as many as there is capacity for', async () => {
    const { dispatcher, sweep, starts, waiting } = await backlog('overflow')
    const rest = `state = 'pending' AND owner IS NULL AND started_at IS NULL`
    await eventually(async () => expect(await suite.count(rest)).to.equal(1_000 - WITH_ENGINE - waiting))
    await suite.database.dataSource.query(
      `UPDATE delivery SET sweep_at = now() - interval '1 ms' WHERE ${rest}`,
    )
    expect(await sweep.runOnce()).to.be.at.most(IN_MEMORY)
    const left = await suite.count(rest)
    for (let pass = 0; pass < 3; pass++) expect(await sweep.runOnce()).to.equal(0)
    endAttempts(dispatcher, starts().slice(0, 5))
    await eventually(() => expect(starts()).to.have.length(WITH_ENGINE + 5))
    expect(await sweep.runOnce()).to.equal(5)
    expect(await suite.count(rest)).to.equal(left - 5)
  })

  it('continues one for one as attempts end', async () => {
    const { dispatcher, starts, waiting } = await backlog('direct')
    endAttempts(dispatcher, starts().slice(0, 8))
    await eventually(() => expect(starts()).to.have.length(WITH_ENGINE + 8))
    expect(dispatcher.load().queued).to.equal(waiting - 8)
  })

  it('continues when another process made the attempts', async () => {
    const { dispatcher, starts, waiting } = await backlog('direct')
    const ids = starts().map(({ deliveryId }) => deliveryId)
    await suite.database.dataSource.query(
      `UPDATE delivery SET state = 'waiting', attempts = 1 WHERE id = ANY($1::uuid[])`,
      [ids],
    )
    await eventually(() => expect(starts()).to.have.length(2 * WITH_ENGINE))
    expect(dispatcher.load().queued).to.equal(waiting - WITH_ENGINE)
  })
})
