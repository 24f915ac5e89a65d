import { expect } from 'chai'
import { proveEndpoint } from '../../helpers/deliveries/attempts.ts'
import { endAttempts } from '../../helpers/deliveries/dispatcher.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createDeferredAnswers } from '../../helpers/receivers/deferred-answers.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

/** So many deliveries that wait for Temporal mean that it is behind. */
const BEHIND = 16

describe('first attempts in `overflow`', () => {
  const suite = useInlineAttempts()
  const completed = (count: number) =>
    eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(count))

  it('are left to workflows while Temporal keeps up', async () => {
    const endpoint = await suite.endpoint()
    const { dispatcher, endpoints } = suite.process({ mode: 'overflow' })
    proveEndpoint(endpoints, endpoint.webhookId)
    for (let round = 0; round < 4; round++) {
      const deliveries = await endpoint.publish(BEHIND)
      dispatcher.start(deliveries)
      await eventually(() => expect(suite.temporal.starts).to.have.length((round + 1) * BEHIND))
      // As the worker of this process does with each attempt that a workflow asks it for.
      endAttempts(dispatcher, deliveries)
    }
    expect(suite.temporal.starts.every(({ kind, next }) => kind === 'first' && next.number === 1)).to.equal(
      true,
    )
    expect(endpoint.receiver.posts).to.have.length(0)
  })

  it('are made inline while Temporal is behind, and are marked for the backfill', async () => {
    const endpoint = await suite.endpoint()
    const { dispatcher, endpoints } = suite.process({ mode: 'overflow' })
    proveEndpoint(endpoints, endpoint.webhookId)
    dispatcher.start(await endpoint.publish(60))
    await completed(60 - BEHIND)
    await eventually(() => expect(suite.temporal.starts).to.have.length(BEHIND))
    expect(endpoint.receiver.posts).to.have.length(60 - BEHIND)
    const marked = `state = 'completed' AND started_at IS NULL AND sweep_at <= now()`
    expect(await suite.count(marked)).to.equal(60 - BEHIND)
    expect(suite.temporal.backfilled).to.have.length(0)
  })

  it('are left to workflows for a failing endpoint, however far Temporal is behind', async () => {
    const [healthy, failing] = [await suite.endpoint(), await suite.endpoint(() => 500)]
    suite.process({ mode: 'direct' }).dispatcher.start(await failing.publish(1))
    await eventually(async () => expect(await suite.count(`state = 'waiting'`)).to.equal(1))
    const { dispatcher, endpoints } = suite.process({ mode: 'overflow' })
    proveEndpoint(endpoints, healthy.webhookId)
    dispatcher.start(await healthy.publish(BEHIND))
    const toFailing = await failing.publish(10)
    dispatcher.start([...toFailing, ...(await healthy.publish(10))])
    await completed(10)
    // Of an endpoint without a success, two are in Temporal at once.
    await eventually(() => expect(suite.temporal.starts).to.have.length(1 + BEHIND + 2))
    for (const { deliveryId } of toFailing.slice(0, 2))
      expect(suite.temporal.startsOf(deliveryId)[0]).to.include({ kind: 'unproven' })
    expect(failing.receiver.posts).to.have.length(1)
  })

  it('are left to workflows that have started, which do not count as waiting', async () => {
    const [healthy, failing] = [await suite.endpoint(), await suite.endpoint(() => 500)]
    suite.process({ mode: 'direct' }).dispatcher.start(await failing.publish(1))
    await eventually(async () => expect(await suite.count(`state = 'waiting'`)).to.equal(1))
    const { dispatcher, endpoints } = suite.process({ mode: 'overflow' })
    proveEndpoint(endpoints, healthy.webhookId)
    dispatcher.start(await failing.publish(BEHIND))
    await eventually(() => expect(suite.temporal.starts).to.have.length(3))
    const begun = await healthy.publish(BEHIND)
    dispatcher.start(begun)
    await eventually(() => expect(suite.temporal.starts).to.have.length(3 + BEHIND))
    for (const { deliveryId, webhookId } of begun)
      dispatcher.onAttempt({ type: 'begun', isInline: false, deliveryId, webhookId })
    dispatcher.start(await healthy.publish(1))
    await eventually(() => expect(suite.temporal.starts).to.have.length(4 + BEHIND))
    expect(healthy.receiver.posts).to.have.length(0)
  })

  it('are made inline while Temporal is unavailable', async () => {
    const endpoint = await suite.endpoint()
    const { dispatcher } = suite.process({ mode: 'overflow' })
    suite.temporal.isUnavailable = true
    dispatcher.start(await endpoint.publish(1))
    await eventually(() => expect(dispatcher.isBusy()).to.equal(true))
    const deliveries = await endpoint.publish(5)
    dispatcher.start(deliveries)
    for (const { deliveryId } of deliveries)
      await eventually(async () => {
        const row = await suite.row(deliveryId)
        expect(row).to.include({ state: 'completed', started_at: null })
        expect(row.sweep_at).not.to.equal(null)
      })
  })

  it('are made inline when Temporal becomes unavailable with attempts that it accepted', async () => {
    const endpoint = await suite.endpoint()
    let isServing = true
    const { dispatcher } = suite.process({ mode: 'overflow', dispatcher: { isServing: () => isServing } })
    const deliveries = await endpoint.publish(10)
    dispatcher.start(deliveries)
    // An endpoint that never answered takes two at once.
    await eventually(() => expect(suite.temporal.starts).to.have.length(2))
    isServing = false
    await completed(8)
  })

  it('deliver a single event while Temporal is unavailable', async () => {
    const endpoint = await suite.endpoint()
    const { dispatcher, sweep } = suite.process({ mode: 'overflow' })
    suite.temporal.isUnavailable = true
    sweep.start()
    dispatcher.start(await endpoint.publish(1))
    await completed(1)
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('start a workflow after a failure, as in `direct`', async () => {
    const [endpoint, answers] = [await suite.endpoint(), createDeferredAnswers()]
    endpoint.answerWith(answers.answer)
    const { dispatcher, endpoints } = suite.process({ mode: 'overflow' })
    proveEndpoint(endpoints, endpoint.webhookId)
    const deliveries = await endpoint.publish(BEHIND + 3)
    dispatcher.start(deliveries)
    await eventually(() => expect(answers.pending()).to.equal(3))
    answers.release(500)
    const seconds = () => suite.temporal.starts.filter(({ next }) => next.number === 2)
    await eventually(() => expect(seconds()).to.have.length(3))
    await eventually(async () =>
      expect(await suite.count(`state = 'waiting' AND started_at IS NOT NULL`)).to.equal(3),
    )
  })
})
