import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { createShutdown } from '../../../src/shutdown.ts'
import { eventually } from '../../helpers/eventually.ts'
import { TEST_PROCESS } from '../../helpers/database/factories.ts'
import { createDeferredAnswers } from '../../helpers/receivers/deferred-answers.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

const TIMEOUT_MS = 3_000

/** How long an attempt leases its row: its deadline, and what a claim lasts beyond it. */
const HOLD_MS = TIMEOUT_MS + 5_000

describe('the lease of a delivery with an inline attempt', () => {
  const suite = useInlineAttempts()
  const other = () => suite.process({ processId: randomUUID(), attemptTimeoutMs: TIMEOUT_MS })
  const reaches = (deliveryId: string, expected: object) =>
    eventually(async () => expect(await suite.row(deliveryId)).to.include(expected))

  /** One delivery in mid-POST, which waits for its answer. */
  async function underWay(isNoted: boolean) {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const delivery = await endpoint.publishOne()
    const { deliveryId } = delivery
    const { dispatcher } = suite.process({ attemptTimeoutMs: TIMEOUT_MS })
    dispatcher.start([delivery])
    await eventually(() => expect(answers.pending()).to.equal(1))
    if (isNoted) await reaches(deliveryId, { state: 'in_progress' })
    return { answers, endpoint, deliveryId, dispatcher }
  }

  it('shows a POST that takes more than half a second as in progress, and covers all of it', async () => {
    const { answers, deliveryId } = await underWay(false)
    expect(await suite.row(deliveryId)).to.include({ state: 'pending', claims: 0, owner: TEST_PROCESS })
    await reaches(deliveryId, { state: 'in_progress', claims: 1, owner: TEST_PROCESS, attempts: 0 })
    const noted = await suite.row(deliveryId)
    expect(noted.lease_until!.getTime() - Date.now()).to.be.within(HOLD_MS - 1_000, HOLD_MS + 100)
    answers.release()
    await reaches(deliveryId, { state: 'completed', attempts: 1, claims: 0, owner: null, sweep_at: null })
  })

  for (const isNoted of [false, true]) {
    const which = isNoted ? 'that is noted as under way' : 'that is held by the lease of its commit alone'

    it(`leaves a delivery ${which} to its process until it expires`, async () => {
      const { answers, endpoint, deliveryId } = await underWay(isNoted)
      expect(await other().sweep.runOnce()).to.equal(0)
      answers.release()
      await reaches(deliveryId, { state: 'completed', attempts: 1 })
      expect(endpoint.receiver.posts).to.have.length(1)
      expect(suite.temporal.starts).to.have.length(0)
    })

    it(`releases a delivery ${which} to another process when it expires: one duplicate, recorded once`, async () => {
      const { answers, endpoint, deliveryId } = await underWay(isNoted)
      endpoint.answerWith(() => 200)
      await suite.age(deliveryId)
      expect(await other().sweep.runOnce()).to.equal(1)
      await reaches(deliveryId, { state: 'completed', attempts: 1 })
      // The first process, which was only slow, gets its answer now.
      answers.release(500)
      await eventually(() =>
        expect(endpoint.receiver.posts.every((post) => post.answeredAt > 0)).to.equal(true),
      )
      await reaches(deliveryId, { state: 'completed', attempts: 1 })
      expect(endpoint.receiver.posts).to.have.length(2)
      expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
    })

    it(`is released at once for a delivery ${which} whose POST is cut off on shutdown`, async () => {
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

  it('has a delivery in mid-POST swept as soon as it expires, in case its process died', async () => {
    const { answers, deliveryId } = await underWay(true)
    const { lease_until: until, sweep_at: sweepAt } = await suite.row(deliveryId)
    answers.release()
    expect(sweepAt!.getTime() - until!.getTime()).to.be.within(0, 5_000)
  })

  it('has a claimed delivery swept as soon as it expires', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const delivery = await endpoint.publishOne()
    suite.process({ attemptTimeoutMs: TIMEOUT_MS }).dispatcher.start([{ ...delivery, fresh: null }])
    await eventually(() => expect(answers.pending()).to.equal(1))
    const { lease_until: until, sweep_at: sweepAt } = await suite.row(delivery.deliveryId)
    answers.release()
    expect(sweepAt!.getTime() - until!.getTime()).to.be.within(0, 5_000)
  })

  it('passes a delivery of a dead process to another, which posts it inline too', async () => {
    const endpoint = await suite.endpoint()
    const deliveries = await endpoint.publish(30, { leaseMs: -1 })
    const [one, another] = [other(), other()]
    await Promise.all([one.sweep.runOnce(), another.sweep.runOnce()])
    await eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(30))
    for (const { deliveryId } of deliveries) expect(endpoint.receiver.postsOf(deliveryId)).to.have.length(1)
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('is released at once for waiting deliveries on shutdown, while POSTs in flight finish', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const [first, ...others] = await endpoint.publish(6)
    const { dispatcher } = suite.process({ dispatcher: { slots: 1 }, shutdown: createShutdown(5_000) })
    dispatcher.start([first!, ...others])
    await eventually(() => expect(answers.pending()).to.equal(1))
    const stopped = dispatcher.stop()
    await eventually(async () =>
      expect(await suite.count(`state = 'pending' AND owner IS NULL AND sweep_at <= now()`)).to.equal(5),
    )
    answers.release()
    await stopped
    expect(await suite.row(first!.deliveryId)).to.include({ state: 'completed', attempts: 1 })
    expect(endpoint.receiver.posts).to.have.length(1)
    await other().sweep.runOnce()
    await eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(6))
    expect(endpoint.receiver.posts).to.have.length(6)
  })
})
