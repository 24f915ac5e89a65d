import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { proveEndpoint } from '../../helpers/deliveries/attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createGatedAnswers } from '../../helpers/receivers/gated-answers.ts'
import { useFirstAttempts } from '../../helpers/deliveries/use-first-attempts.ts'

/** The highest limit of an endpoint. */
const MAX_LIMIT = 50

describe('how many first attempts a process makes, and for whom', () => {
  const suite = useFirstAttempts()
  const completed = (count: number) =>
    eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(count))

  it('makes at most 50 of one webhook at once, and the others as these end', async () => {
    const gate = createGatedAnswers()
    const endpoint = await suite.endpoint(gate.answer)
    const { dispatcher, endpoints } = suite.process()
    proveEndpoint(endpoints, endpoint.webhookId)
    dispatcher.start(await endpoint.publish(100))
    await eventually(() => expect(gate.held()).to.equal(MAX_LIMIT))
    expect(dispatcher.load()).to.deep.equal({ waiting: 50, inFlight: 0, attempting: MAX_LIMIT })
    gate.release()
    await completed(100)
    expect(gate.mostHeld()).to.equal(MAX_LIMIT)
    expect(endpoint.receiver.posts).to.have.length(100)
    expect(suite.engine.starts).to.have.length(0)
  })

  it('has so many under way as it has slots, and serves several webhooks in turn', async () => {
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
    // The burst for the first one stands before all others.
    const [first = [], ...others] = await Promise.all(endpoints.map((endpoint) => endpoint.publish(20)))
    suite.process({ dispatcher: { slots: 4 } }).dispatcher.start([...first, ...others.flat()])
    await completed(60)
    expect(most).to.be.at.most(4)
    const half = order.slice(4, 34)
    for (const index of [0, 1, 2])
      expect(half.filter((one) => one === index).length, `of ${index}`).to.be.within(7, 13)
  })

  it('leaves those that wait behind an endpoint that takes more than a second to workflows with slow attempts', async () => {
    const endpoint = await suite.endpoint(async () => {
      await delay(1_100)
      return 200
    })
    const { dispatcher, endpoints } = suite.process()
    proveEndpoint(endpoints, endpoint.webhookId)
    dispatcher.start(await endpoint.publish(MAX_LIMIT + 8))
    await completed(MAX_LIMIT)
    await eventually(() => expect(suite.engine.starts).to.have.length.of.at.least(2))
    const next = await endpoint.publishOne()
    expect(next.hasOpenIncident).to.equal(false)
    dispatcher.start([next])
    await eventually(() => expect(suite.engine.startsOf(next.deliveryId)).to.have.length(1))
    expect(suite.engine.starts.every(({ kind, next }) => kind === 'slow' && next.number === 1)).to.equal(true)
    expect(endpoint.receiver.posts).to.have.length(MAX_LIMIT)
  })

  it('leaves those that come while an endpoint hangs to workflows with slow attempts, at once', async () => {
    const endpoint = await suite.endpoint(() => null)
    const { dispatcher } = suite.process()
    dispatcher.start(await endpoint.publish(1))
    await eventually(() => expect(endpoint.receiver.posts).to.have.length(1))
    // Longer than a quick endpoint takes.
    await delay(1_000)
    const next = await endpoint.publishOne()
    dispatcher.start([next])
    await eventually(() => expect(suite.engine.startsOf(next.deliveryId)).to.have.length(1))
    expect(suite.engine.starts[0]).to.include({ kind: 'slow' })
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('starts none that wait behind an endpoint that hangs, nor keeps them, until it has a slot', async () => {
    const endpoint = await suite.endpoint(() => null)
    const { dispatcher } = suite.process({ attemptTimeoutMs: 15_000 })
    dispatcher.start(await endpoint.publish(10))
    await eventually(() => expect(endpoint.receiver.posts).to.have.length(2))
    const released = `state = 'pending' AND owner IS NULL AND started_at IS NULL`
    await eventually(async () => expect(await suite.count(released)).to.equal(8), 8_000)
    expect(dispatcher.load()).to.deep.equal({ waiting: 0, inFlight: 0, attempting: 2 })
    expect(suite.engine.starts).to.have.length(0)
  })

  it('takes an endpoint that is quick again for a healthy one', async () => {
    const endpoint = await suite.endpoint(async (index) => {
      if (index === 0 && endpoint.receiver.posts.length === 1) await delay(1_050)
      return 200
    })
    const { dispatcher, endpoints } = suite.process()
    dispatcher.start(await endpoint.publish(1))
    await completed(1)
    const next = await endpoint.publishOne()
    dispatcher.start([next])
    await eventually(() => expect(suite.engine.starts).to.have.length(1))
    // As an attempt elsewhere in this process would find it.
    proveEndpoint(endpoints, endpoint.webhookId, 1)
    dispatcher.start(await endpoint.publish(1))
    await completed(2)
    expect(suite.engine.starts).to.have.length(1)
  })
})
