import { expect } from 'chai'
import { proveEndpoint } from '../../helpers/deliveries/attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createDeferredAnswers } from '../../helpers/receivers/receiver.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'
import { processTimers } from '../../../src/timers.ts'

/** So many deliveries that wait for Temporal mean that it is behind. */
const BEHIND = 16

describe('first attempts in `overflow`', () => {
  const suite = useInlineAttempts()
  /** A process that is never late: what arrives, arrives at once, and a busy machine is not taken for a quiet minute. */
  const startProcess = (options: { isServing?: () => boolean } = {}) =>
    suite.process({
      mode: 'overflow',
      attemptTimeoutMs: 60_000,
      dispatcher: { ...options, timers: { ...processTimers, nowMs: () => 0 } },
    })
  const completed = (count: number) =>
    eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(count))

  it('are left to workflows while Temporal keeps up', async () => {
    const endpoint = await suite.endpoint()
    const { publish, endAttempts, endpoints } = startProcess()
    proveEndpoint(endpoints, endpoint.webhookId)
    // Never so many wait that Temporal is behind, however long a round takes; more than that arrive in all.
    const eachRound = BEHIND - 1
    for (let round = 0; round < 4; round++) {
      const deliveries = await publish(endpoint, eachRound)
      await eventually(() => expect(suite.temporal.starts).to.have.length((round + 1) * eachRound))
      // As the worker of this process does with each attempt that a workflow asks it for.
      endAttempts(deliveries)
    }
    expect(suite.temporal.starts.every(({ queue, next }) => queue === 'first' && next.number === 1)).to.equal(
      true,
    )
    expect(endpoint.receiver.posts).to.have.length(0)
  })

  it('are made inline while Temporal is behind, whatever the endpoint answers, and are owed a workflow', async () => {
    for (const [answer, state] of [
      [200, 'completed'],
      [503, 'waiting'],
    ] as const) {
      const answers = createDeferredAnswers()
      const endpoint = await suite.endpoint(answers.answer)
      const { publish, dispatcher, endpoints } = startProcess()
      proveEndpoint(endpoints, endpoint.webhookId)
      dispatcher.begin()
      await publish(endpoint, 30)
      await publish(endpoint, 30)
      await eventually(() => expect(answers.pending()).to.equal(60 - BEHIND))
      answers.release(answer)
      const made = `state = '${state}' AND webhook_id = '${endpoint.webhookId}'`
      await eventually(async () => expect(await suite.count(made)).to.equal(60 - BEHIND))
      expect(suite.temporal.starts.filter(({ next }) => next.number === 1)).to.have.length.below(
        BEHIND * 2 + 1,
      )
      if (state === 'completed')
        expect(await suite.count(`${made} AND workflow_started_at IS NULL AND sweep_at <= now()`)).to.equal(
          60 - BEHIND,
        )
    }
  })

  it('claim what was committed before Temporal fell behind, and leave to it what it has', async () => {
    const endpoint = await suite.endpoint()
    const { publish, endpoints } = startProcess()
    proveEndpoint(endpoints, endpoint.webhookId)
    await publish(endpoint, 60)
    await completed(60 - BEHIND)
    expect(suite.temporal.starts).to.have.length(BEHIND)
    expect(endpoint.receiver.posts).to.have.length(60 - BEHIND)
  })

  it('do not count what a worker has begun as waiting', async () => {
    const endpoint = await suite.endpoint()
    const { publish, endAttempts, endpoints } = startProcess()
    proveEndpoint(endpoints, endpoint.webhookId)
    const begun = await publish(endpoint, BEHIND - 1)
    await eventually(() => expect(suite.temporal.starts).to.have.length(BEHIND - 1))
    endAttempts(begun)
    // Together with those that have begun they would be too many.
    await publish(endpoint, 2)
    await eventually(() => expect(suite.temporal.starts).to.have.length(BEHIND + 1))
    expect(endpoint.receiver.posts).to.have.length(0)
  })

  it('deliver events while Temporal is unavailable', async () => {
    const endpoint = await suite.endpoint()
    const { publish, dispatcher } = startProcess()
    suite.temporal.isUnavailable = true
    dispatcher.begin()
    // The first start finds out.
    await publish(endpoint)
    await eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(1))
    await publish(endpoint, 5)
    await completed(6)
    expect(await suite.count(`workflow_started_at IS NULL AND sweep_at IS NOT NULL`)).to.equal(6)
  })

  it('are made inline when Temporal becomes unavailable with starts that wait in memory', async () => {
    const endpoint = await suite.endpoint()
    let isServing = true
    const { publish, dispatcher } = startProcess({ isServing: () => isServing })
    await publish(endpoint, 10)
    // Of an endpoint that has not answered one is in Temporal.
    await eventually(() => expect(suite.temporal.starts).to.have.length(1))
    isServing = false
    dispatcher.begin()
    await completed(9)
  })

  it('start a workflow after a failure, as in `direct`', async () => {
    const [endpoint, answers] = [await suite.endpoint(), createDeferredAnswers()]
    endpoint.answerWith(answers.answer)
    const { publish, endpoints } = startProcess()
    proveEndpoint(endpoints, endpoint.webhookId)
    await publish(endpoint, BEHIND + 3)
    await eventually(() => expect(answers.pending()).to.equal(3))
    answers.release(500)
    const seconds = () => suite.temporal.starts.filter(({ next }) => next.number === 2)
    await eventually(() => expect(seconds()).to.have.length(3))
    await eventually(async () =>
      expect(await suite.count(`state = 'waiting' AND workflow_started_at IS NOT NULL`)).to.equal(3),
    )
  })
})
