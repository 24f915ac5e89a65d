import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import { useFirstAttempts } from '../../helpers/use-first-attempts.ts'

/** Deliveries of one webhook that are with the engine at once, and of one that is unwell in memory. */
const WITH_ENGINE = 50
const IN_MEMORY = 200

describe('a backlog of 1,000 for a webhook that is failing', () => {
  const suite = useFirstAttempts()

  async function backlog(mode: 'workflow' | 'overflow' | 'direct') {
    const [failing, well] = [await suite.endpoint(() => 500), await suite.endpoint()]
    suite.process({ mode: 'direct' }).starter.start(await failing.publish(1))
    await eventually(async () => expect(await suite.count(`state = 'waiting'`)).to.equal(1))
    const made = suite.process({ mode, starter: { perWebhook: WITH_ENGINE } })
    made.starter.start(await failing.publish(1_000))
    const starts = () => suite.engine.starts.filter(({ next }) => next.number === 1)
    await eventually(() => {
      expect(starts()).to.have.length(WITH_ENGINE)
      expect(made.starter.load()).to.include({ inFlight: 0 })
    })
    const { waiting } = made.starter.load()
    return { ...made, failing, well, starts, waiting }
  }

  for (const mode of ['workflow', 'overflow', 'direct'] as const) {
    it(`keeps to its share of the engine and of the memory in \`${mode}\`; the rest waits in the database`, async () => {
      const { starter, failing, starts, waiting } = await backlog(mode)
      expect(waiting).to.be.within(1, IN_MEMORY)
      expect(starts().every(({ webhookId, apart }) => webhookId === failing.webhookId && apart)).to.equal(
        true,
      )
      const returned = `state = 'pending' AND owner IS NULL AND started_at IS NULL
        AND sweep_at BETWEEN now() + interval '25 s' AND now() + interval '46 s'`
      await eventually(async () =>
        expect(await suite.count(returned)).to.equal(1_000 - WITH_ENGINE - waiting),
      )
      expect(starter.isBusy()).to.equal(false)
      expect(failing.receiver.posts).to.have.length(1)
    })

    it(`stands before nobody else's delivery in \`${mode}\`, nor before the sweep`, async () => {
      const { starter, sweep, well } = await backlog(mode)
      const [fresh, abandoned] = [await well.publishOne(), await well.publishOne({ leaseMs: -1 })]
      starter.start([fresh])
      await sweep.runOnce()
      for (const { deliveryId } of [fresh, abandoned])
        await eventually(() => {
          const isBegun = [...well.receiver.postsOf(deliveryId), ...suite.engine.startsOf(deliveryId)]
          expect(isBegun).to.have.length(1)
        }, 2_000)
    })
  }

  it('keeps no completed delivery from its workflow, however often its rest comes round', async () => {
    const { starter, sweep } = await backlog('overflow')
    const returned = `state = 'pending' AND owner IS NULL AND started_at IS NULL`
    await eventually(async () => expect(await suite.count(returned)).to.be.above(700))
    // What came at once has been forgotten by then.
    await eventually(() => expect(starter.isIdle()).to.equal(true), 3_000)
    // Half a minute later, and again as long as the endpoint hangs.
    await suite.database.dataSource.query(
      `UPDATE delivery SET sweep_at = now() - interval '1 ms' WHERE ${returned}`,
    )
    expect(await sweep.runOnce()).to.equal(200)
    expect(starter.load().waiting).to.be.at.most(IN_MEMORY)
    expect(starter.isIdle()).to.equal(true)
  })

  it('goes on as attempts end, one for one', async () => {
    const { starter, handedOver, starts, waiting } = await backlog('direct')
    for (const { deliveryId } of starts().slice(0, 20)) handedOver.ended(deliveryId)
    await eventually(() => expect(starts()).to.have.length(WITH_ENGINE + 20))
    expect(starter.load().waiting).to.equal(waiting - 20)
  })

  it('goes on when another process made the attempts', async () => {
    const { starter, starts, waiting } = await backlog('direct')
    const ids = starts().map(({ deliveryId }) => deliveryId)
    await suite.database.dataSource.query(
      `UPDATE delivery SET state = 'waiting', attempts = 1 WHERE id = ANY($1::uuid[])`,
      [ids],
    )
    await eventually(() => expect(starts()).to.have.length(2 * WITH_ENGINE))
    expect(starter.load().waiting).to.equal(waiting - WITH_ENGINE)
  })
})
