import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import { createGatedAnswers } from '../../helpers/gated-answers.ts'
import { useFirstAttempts } from '../../helpers/use-first-attempts.ts'

/** First attempts of one webhook that a process has under way at once. */
const MOST_PER_WEBHOOK = 32

describe('how many first attempts a process makes, and for whom', () => {
  const suite = useFirstAttempts()
  const completed = (count: number) =>
    eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(count))

  it('makes at most 32 of one webhook at once, and the others as these end', async () => {
    const gate = createGatedAnswers()
    const endpoint = await suite.endpoint(gate.answer)
    const { starter } = suite.process()
    starter.start(await endpoint.publish(100))
    await eventually(() => expect(gate.held()).to.equal(MOST_PER_WEBHOOK))
    expect(starter.load()).to.deep.equal({ waiting: 68, inFlight: 0, attempting: MOST_PER_WEBHOOK })
    gate.release()
    await completed(100)
    expect(gate.mostHeld()).to.equal(MOST_PER_WEBHOOK)
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
    suite.process({ starter: { slots: 4 } }).starter.start([...first, ...others.flat()])
    await completed(60)
    expect(most).to.be.at.most(4)
    const half = order.slice(4, 34)
    for (const index of [0, 1, 2])
      expect(half.filter((one) => one === index).length, `of ${index}`).to.be.within(7, 13)
  })

  it('leaves those that wait behind an endpoint that takes more than a second to workflows apart', async () => {
    const endpoint = await suite.endpoint(async () => {
      await delay(1_100)
      return 200
    })
    const { starter } = suite.process()
    starter.start(await endpoint.publish(MOST_PER_WEBHOOK + 8))
    await completed(MOST_PER_WEBHOOK)
    await eventually(() => expect(suite.engine.starts).to.have.length(8))
    const next = await endpoint.publishOne()
    expect(next.troubled).to.equal(false)
    starter.start([next])
    await eventually(() => expect(suite.engine.startsOf(next.deliveryId)).to.have.length(1))
    expect(suite.engine.starts.every(({ apart, next: { number } }) => apart && number === 1)).to.equal(true)
    expect(endpoint.receiver.posts).to.have.length(MOST_PER_WEBHOOK)
  })

  it('leaves those that come while an endpoint hangs to workflows apart, at once', async () => {
    const endpoint = await suite.endpoint(() => null)
    const { starter } = suite.process()
    starter.start(await endpoint.publish(1))
    await eventually(() => expect(endpoint.receiver.posts).to.have.length(1))
    // Longer than a quick endpoint takes.
    await delay(1_000)
    const next = await endpoint.publishOne()
    starter.start([next])
    await eventually(() => expect(suite.engine.startsOf(next.deliveryId)).to.have.length(1))
    expect(suite.engine.starts[0]).to.include({ apart: true })
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('leaves those that wait behind an endpoint that hangs to workflows apart, long before its deadline', async () => {
    const endpoint = await suite.endpoint(() => null)
    const { starter } = suite.process({ attemptTimeoutMs: 15_000 })
    starter.start(await endpoint.publish(MOST_PER_WEBHOOK + 8))
    await eventually(() => expect(endpoint.receiver.posts).to.have.length(MOST_PER_WEBHOOK))
    await eventually(() => expect(suite.engine.starts).to.have.length(8), 8_000)
    expect(suite.engine.starts.every(({ apart }) => apart)).to.equal(true)
    expect(starter.load().waiting).to.equal(0)
  })

  it('takes an endpoint that is quick again for one that is well', async () => {
    const endpoint = await suite.endpoint(async (index) => {
      if (index === 0 && endpoint.receiver.posts.length === 1) await delay(1_050)
      return 200
    })
    const { starter, watch } = suite.process()
    starter.start(await endpoint.publish(1))
    await completed(1)
    const next = await endpoint.publishOne()
    starter.start([next])
    await eventually(() => expect(suite.engine.starts).to.have.length(1))
    // As an attempt elsewhere in this process would find it.
    watch.begin(endpoint.webhookId)({ succeeded: true, durationMs: 20 })
    starter.start(await endpoint.publish(1))
    await completed(2)
    expect(suite.engine.starts).to.have.length(1)
  })
})
