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
    const { publish, dispatcher, endpoints } = suite.process({ dispatcher: { slots: 100 } })
    proveEndpoint(endpoints, endpoint.webhookId)
    await publish(endpoint, 100)
    dispatcher.begin()
    await eventually(() => expect(answers.pending()).to.equal(MAX_LIMIT))
    answers.release()
    await completed(100)
    expect(answers.maxPending()).to.equal(MAX_LIMIT)
    expect(endpoint.receiver.posts).to.have.length(100)
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('permit one attempt at an endpoint that has not answered yet', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const { publish, dispatcher } = suite.process()
    const committed = await publish(endpoint, 10)
    expect(committed.filter(({ claim }) => claim !== null)).to.have.length(1)
    dispatcher.begin()
    await eventually(() => expect(answers.pending()).to.equal(1))
    answers.release()
    await completed(10)
  })

  it('permit as many attempts as there are slots, and serve webhooks round-robin', async () => {
    const order: number[] = []
    let [underWay, most] = [0, 0]
    const all = await Promise.all(
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
    const { dispatcher, endpoints } = suite.process({ dispatcher: { slots: 4 } })
    for (const endpoint of all) {
      proveEndpoint(endpoints, endpoint.webhookId)
      // The burst for the first one is committed before all others.
      await endpoint.commit(20)
    }
    dispatcher.begin()
    await completed(60)
    expect(most).to.be.at.most(4)
    const half = order.slice(4, 34)
    for (const index of [0, 1, 2])
      expect(half.filter((one) => one === index).length, `of ${index}`).to.be.within(6, 14)
  })

  it('leave an endpoint slower than a second to workflows on the slow queue, pulled for its free slots', async () => {
    const endpoint = await suite.endpoint(async () => {
      await delay(1_100)
      return 200
    })
    const { publish, dispatcher } = suite.process()
    await publish(endpoint)
    await completed(1)
    const reserved = dispatcher.reserve([endpoint.organisationId], 10)
    expect(reserved.rooms.webhooks).to.deep.equal([{ webhookId: endpoint.webhookId, room: 0 }])
    reserved.settle()
    await endpoint.commit(10)
    dispatcher.begin()
    // As many as it has slots: nothing of it waits in memory.
    await eventually(() => expect(suite.temporal.starts).to.have.length(4))
    await delay(1_500)
    expect(suite.temporal.starts).to.have.length(4)
    expect(suite.temporal.starts.every(({ queue, next }) => queue === 'slow' && next.number === 1)).to.equal(
      true,
    )
    expect(dispatcher.load().queued).to.equal(0)
    expect(await suite.count(`state = 'pending' AND workflow_started_at IS NULL`)).to.equal(6)
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('make attempts inline again once an endpoint is quick again', async () => {
    const endpoint = await suite.endpoint(async () => {
      if (endpoint.receiver.posts.length === 1) await delay(1_050)
      return 200
    })
    const { publish, dispatcher, endpoints } = suite.process()
    await publish(endpoint)
    await completed(1)
    expect((await publish(endpoint))[0]!.claim).to.equal(null)
    // As an attempt elsewhere in this process would find it.
    proveEndpoint(endpoints, endpoint.webhookId, 1)
    await dispatcher.pull()
    await completed(2)
    expect((await publish(endpoint))[0]!.claim).not.to.equal(null)
    await completed(3)
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('rewrite no row without capacity', async () => {
    const endpoint = await suite.endpoint(() => null)
    const { publish, dispatcher } = suite.process({ attemptTimeoutMs: 15_000 })
    await publish(endpoint)
    await eventually(() => expect(endpoint.receiver.posts).to.have.length(1))
    await endpoint.commit(50)
    const versions = async (): Promise<unknown> =>
      (await suite.database.dataSource.query(
        `SELECT id, xmin::text, ctid::text FROM delivery ORDER BY id`,
      )) as unknown
    await delay(1_100)
    const before = await versions()
    for (let pass = 0; pass < 5; pass++) await dispatcher.pull()
    expect(await versions()).to.deep.equal(before)
  })
})
