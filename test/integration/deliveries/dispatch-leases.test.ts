import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { createShutdown } from '../../../src/shutdown.ts'
import { eventually } from '../../helpers/eventually.ts'
import { TEST_PROCESS } from '../../helpers/database/factories.ts'
import { createGatedAnswers } from '../../helpers/receivers/gated-answers.ts'
import { useFirstAttempts } from '../../helpers/deliveries/use-first-attempts.ts'

const TIMEOUT_MS = 3_000

/** How long an attempt holds its row: its deadline, and what a claim lasts beyond it. */
const HOLD_MS = TIMEOUT_MS + 5_000

describe('who keeps a delivery whose first attempt is made beside the engine', () => {
  const suite = useFirstAttempts()
  const other = () => suite.process({ processId: randomUUID(), attemptTimeoutMs: TIMEOUT_MS })
  const reaches = (deliveryId: string, expected: object) =>
    eventually(async () => expect(await suite.row(deliveryId)).to.include(expected))

  /** One delivery in mid-POST, which waits for its answer. */
  async function underWay(isNoted: boolean) {
    const gate = createGatedAnswers()
    const endpoint = await suite.endpoint(gate.answer)
    const delivery = await endpoint.publishOne()
    const { deliveryId } = delivery
    const { dispatcher } = suite.process({ attemptTimeoutMs: TIMEOUT_MS })
    dispatcher.start([delivery])
    await eventually(() => expect(gate.held()).to.equal(1))
    if (isNoted) await reaches(deliveryId, { state: 'in_progress' })
    return { gate, endpoint, deliveryId, dispatcher }
  }

  it('shows a POST that takes more than half a second as in progress, and holds its row for all of it', async () => {
    const { gate, deliveryId } = await underWay(false)
    expect(await suite.row(deliveryId)).to.include({ state: 'pending', claims: 0, owner: TEST_PROCESS })
    await reaches(deliveryId, { state: 'in_progress', claims: 1, owner: TEST_PROCESS, attempts: 0 })
    const noted = await suite.row(deliveryId)
    expect(noted.lease_until!.getTime() - Date.now()).to.be.within(HOLD_MS - 1_000, HOLD_MS + 100)
    gate.release()
    await reaches(deliveryId, { state: 'completed', attempts: 1, claims: 0, owner: null, sweep_at: null })
  })

  for (const isNoted of [false, true]) {
    const which = isNoted ? 'that is noted as under way' : 'that is held by the lease of its commit alone'

    it(`leaves a delivery ${which} to its process while the lease holds`, async () => {
      const { gate, endpoint, deliveryId } = await underWay(isNoted)
      expect(await other().sweep.runOnce()).to.equal(0)
      gate.release()
      await reaches(deliveryId, { state: 'completed', attempts: 1 })
      expect(endpoint.receiver.posts).to.have.length(1)
      expect(suite.engine.starts).to.have.length(0)
    })

    it(`takes over a delivery ${which} once the lease has run out: one duplicate, recorded once`, async () => {
      const { gate, endpoint, deliveryId } = await underWay(isNoted)
      endpoint.answerWith(() => 200)
      await suite.age(deliveryId)
      expect(await other().sweep.runOnce()).to.equal(1)
      await reaches(deliveryId, { state: 'completed', attempts: 1 })
      // The first process, which was only slow, gets its answer now.
      gate.release(500)
      await eventually(() =>
        expect(endpoint.receiver.posts.every((post) => post.answeredAt > 0)).to.equal(true),
      )
      await reaches(deliveryId, { state: 'completed', attempts: 1 })
      expect(endpoint.receiver.posts).to.have.length(2)
      expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
    })

    it(`gives back at once a delivery ${which} when its POST is cut off at the end of the process`, async () => {
      const { endpoint, deliveryId, dispatcher } = await underWay(isNoted)
      endpoint.answerWith(() => 200)
      await dispatcher.stop()
      expect(await suite.row(deliveryId)).to.include({ attempts: 0, owner: null })
      expect(await suite.count(`sweep_at <= now() AND coalesce(lease_until <= now(), true)`)).to.equal(1)
      await other().sweep.runOnce()
      await reaches(deliveryId, { state: 'completed', attempts: 1 })
      expect(endpoint.receiver.posts).to.have.length(2)
      expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
    })
  }

  it('has a delivery in mid-POST looked at as soon as its hold can have run out, in case its process died', async () => {
    const { gate, deliveryId } = await underWay(true)
    const { lease_until: until, sweep_at: sweepAt } = await suite.row(deliveryId)
    gate.release()
    expect(sweepAt!.getTime() - until!.getTime()).to.be.within(0, 5_000)
  })

  it('has a delivery that it claimed looked at as soon as its hold can have run out', async () => {
    const gate = createGatedAnswers()
    const endpoint = await suite.endpoint(gate.answer)
    const delivery = await endpoint.publishOne()
    suite.process({ attemptTimeoutMs: TIMEOUT_MS }).dispatcher.start([{ ...delivery, fresh: null }])
    await eventually(() => expect(gate.held()).to.equal(1))
    const { lease_until: until, sweep_at: sweepAt } = await suite.row(delivery.deliveryId)
    gate.release()
    expect(sweepAt!.getTime() - until!.getTime()).to.be.within(0, 5_000)
  })

  it('takes a delivery whose process died before it began, and posts it beside the engine too', async () => {
    const endpoint = await suite.endpoint()
    const deliveries = await endpoint.publish(30, { leaseMs: -1 })
    const [one, another] = [other(), other()]
    await Promise.all([one.sweep.runOnce(), another.sweep.runOnce()])
    await eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(30))
    for (const { deliveryId } of deliveries) expect(endpoint.receiver.postsOf(deliveryId)).to.have.length(1)
    expect(suite.engine.starts).to.have.length(0)
  })

  it('gives back at its end what waits, at once, and lets POSTs under way finish', async () => {
    const gate = createGatedAnswers()
    const endpoint = await suite.endpoint(gate.answer)
    const [first, ...others] = await endpoint.publish(6)
    const { dispatcher } = suite.process({ dispatcher: { slots: 1 }, shutdown: createShutdown(5_000) })
    dispatcher.start([first!, ...others])
    await eventually(() => expect(gate.held()).to.equal(1))
    const stopped = dispatcher.stop()
    await eventually(async () =>
      expect(await suite.count(`state = 'pending' AND owner IS NULL AND sweep_at <= now()`)).to.equal(5),
    )
    gate.release()
    await stopped
    expect(await suite.row(first!.deliveryId)).to.include({ state: 'completed', attempts: 1 })
    expect(endpoint.receiver.posts).to.have.length(1)
    await other().sweep.runOnce()
    await eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(6))
    expect(endpoint.receiver.posts).to.have.length(6)
  })
})
