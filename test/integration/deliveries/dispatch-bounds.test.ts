import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { proveEndpoint } from '../../helpers/deliveries/attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createDeferredAnswers } from '../../helpers/receivers/deferred-answers.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

/** The highest limit of an endpoint. */
const MAX_LIMIT = 50

describe('the bounds of inline attempts', () => {
  const suite = useInlineAttempts()
  const completed = (count: number) =>
    eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(count))

  it('permit 50 attempts of one webhook at once, and the others as these end', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const { dispatcher, endpoints } = suite.process()
    proveEndpoint(endpoints, endpoint.webhookId)
    dispatcher.start(await endpoint.publish(100))
    await eventually(() => expect(answers.pending()).to.equal(MAX_LIMIT))
    expect(dispatcher.load()).to.deep.equal({ queued: 50, startsInFlight: 0, inlineInFlight: MAX_LIMIT })
    answers.release()
    await completed(100)
    expect(answers.maxPending()).to.equal(MAX_LIMIT)
    expect(endpoint.receiver.posts).to.have.length(100)
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('permit as many attempts as there are slots, and serve webhooks round-robin', async () => {
    const order: number[] = []
    let [underWay, most] = [0, 0]
    const endpoints = await Promise.all(
      [0, 1, 2].map((index) =>
        suite.endpoint(async () => {
          order.push(index)
          most = Math.max(most, ++underWay)
          await delay(5)
          underWay--
          return 200
        }),
      ),
    )
    // The burst for the first one is queued before all others.
    const [first = [], ...others] = await Promise.all(endpoints.map((endpoint) => endpoint.publish(20)))
    suite.process({ dispatcher: { slots: 4 } }).dispatcher.start([...first, ...others.flat()])
    await completed(60)
    expect(most).to.be.at.most(4)
    const half = order.slice(4, 34)
    for (const index of [0, 1, 2])
      expect(half.filter((one) => one === index).length, `of ${index}`).to.be.within(7, 13)
  })

  it('leave deliveries that wait for an endpoint slower than a second to workflows with slow attempts', async () => {
    const endpoint = await suite.endpoint(async () => {
      await delay(1_100)
      return 200
    })
    const { dispatcher, endpoints } = suite.process()
    proveEndpoint(endpoints, endpoint.webhookId)
    dispatcher.start(await endpoint.publish(MAX_LIMIT + 8))
    await completed(MAX_LIMIT)
    await eventually(() => expect(suite.temporal.starts).to.have.length.of.at.least(2))
    const next = await endpoint.publishOne()
    expect(next.hasOpenIncident).to.equal(false)
    dispatcher.start([next])
    await eventually(() => expect(suite.temporal.startsOf(next.deliveryId)).to.have.length(1))
    expect(suite.temporal.starts.every(({ kind, next }) => kind === 'slow' && next.number === 1)).to.equal(
      true,
    )
    expect(endpoint.receiver.posts).to.have.length(MAX_LIMIT)
  })

  it('leave deliveries that arrive while an endpoint hangs to workflows with slow attempts, at once', async () => {
    const endpoint = await suite.endpoint(() => null)
    const { dispatcher } = suite.process()
    dispatcher.start(await endpoint.publish(1))
    await eventually(() => expect(endpoint.receiver.posts).to.have.length(1))
    // Longer than a quick endpoint takes.
    await delay(1_000)
    const next = await endpoint.publishOne()
    dispatcher.start([next])
    await eventually(() => expect(suite.temporal.startsOf(next.deliveryId)).to.have.length(1))
    expect(suite.temporal.starts[0]).to.include({ kind: 'slow' })
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('release deliveries that wait for a hanging endpoint, unstarted, until it has a slot', async () => {
    const endpoint = await suite.endpoint(() => null)
    const { dispatcher } = suite.process({ attemptTimeoutMs: 15_000 })
    dispatcher.start(await endpoint.publish(10))
    await eventually(() => expect(endpoint.receiver.posts).to.have.length(2))
    const released = `state = 'pending' AND owner IS NULL AND started_at IS NULL`
    await eventually(async () => expect(await suite.count(released)).to.equal(8), 8_000)
    expect(dispatcher.load()).to.deep.equal({ queued: 0, startsInFlight: 0, inlineInFlight: 2 })
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('treat an endpoint that is quick again as healthy', async () => {
    const endpoint = await suite.endpoint(async (index) => {
      if (index === 0 && endpoint.receiver.posts.length === 1) await delay(1_050)
      return 200
    })
    const { dispatcher, endpoints } = suite.process()
    dispatcher.start(await endpoint.publish(1))
    await completed(1)
    const next = await endpoint.publishOne()
    dispatcher.start([next])
    await eventually(() => expect(suite.temporal.starts).to.have.length(1))
    // As an attempt elsewhere in this process would find it.
    proveEndpoint(endpoints, endpoint.webhookId, 1)
    dispatcher.start(await endpoint.publish(1))
    await completed(2)
    expect(suite.temporal.starts).to.have.length(1)
  })
})
