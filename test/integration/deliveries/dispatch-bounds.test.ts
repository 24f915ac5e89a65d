import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { MakeAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoint-concurrency.ts'
import type { AttemptOutcome } from '../../../src/domain/attempt-outcome.ts'
import type { Timers } from '../../../src/timers.ts'
import { proveEndpoint } from '../../helpers/deliveries/attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { audienceOf, useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

/** The highest limit of an endpoint. */
const MAX_LIMIT = 50

/** An answer that is slow also where stalls of this process, which do not count, are taken from it. */
const SLOW_ANSWER_MS = 2_500

const CONFIRMED: AttemptOutcome = { state: 'completed', attempts: 1, failureCode: null, statusCode: 200 }

/** A tenth of real time, so that no attempt is slow because the machine is. */
const slowTimers: Timers = {
  nowMs: () => performance.now() / 10,
  after(ms, run) {
    const timer = setTimeout(run, ms * 10)
    return () => clearTimeout(timer)
  },
}

/** Attempts that last until `release`. Each counts as quick, whatever the machine does. */
function createHeldAttempts() {
  /** The webhook of each delivery, in the order of the first attempts. */
  const begun = new Map<string, string>()
  let [inFlight, maxInFlight] = [0, 0]
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const make: MakeAttempt = async ({ deliveryId, webhookId }, _signals, inline) => {
    begun.set(deliveryId, webhookId)
    maxInFlight = Math.max(maxInFlight, ++inFlight)
    inline!.slot.begin()
    await released
    await new Promise(setImmediate)
    inline!.slot.release({ succeeded: true, isTimeout: false })
    inFlight--
    return CONFIRMED
  }
  return { make, release, begun, inFlight: () => inFlight, maxInFlight: () => maxInFlight }
}

describe('the bounds of inline attempts', () => {
  const suite = useInlineAttempts()
  const completed = (count: number) =>
    eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(count))

  /** Of a process that measures how slow its endpoints really are. */
  const measured = () => ({
    attemptTimeoutMs: 30_000,
    attempts: { endpoints: createEndpoints({ maxLimit: MAX_LIMIT }) },
  })

  /** A process whose attempts last until they are released; `made` waits until so many have begun. */
  function processOfHeld(slots: number) {
    const endpoints = createEndpoints({ maxLimit: MAX_LIMIT, timers: slowTimers })
    const attempts = createHeldAttempts()
    const process = suite.process({
      attemptTimeoutMs: 60_000,
      attempts: { endpoints },
      dispatcher: { slots, timers: slowTimers },
      watching: () => attempts.make,
    })
    const made = (count: number) =>
      eventually(async () => {
        await process.dispatcher.pull()
        expect(attempts.begun.size).to.equal(count)
      })
    return { ...process, attempts, made }
  }

  it('permit 50 attempts of one webhook at once, and the others as these end', async () => {
    const endpoint = await suite.endpoint()
    const { publish, dispatcher, endpoints, attempts, made } = processOfHeld(100)
    proveEndpoint(endpoints, endpoint.webhookId)
    await publish(endpoint, 100)
    dispatcher.begin()
    await made(MAX_LIMIT)
    attempts.release()
    await made(100)
    expect(attempts.maxInFlight()).to.equal(MAX_LIMIT)
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('permit one attempt at an endpoint that has not answered yet', async () => {
    const endpoint = await suite.endpoint()
    const { publish, dispatcher, attempts, made } = processOfHeld(50)
    const committed = await publish(endpoint, 10)
    expect(committed.filter(({ claim }) => claim !== null)).to.have.length(1)
    dispatcher.begin()
    await made(1)
    attempts.release()
    await made(10)
  })

  it('permit as many attempts as there are slots, and serve webhooks round-robin', async () => {
    const all = [await suite.endpoint(), await suite.endpoint(), await suite.endpoint()]
    const { dispatcher, endpoints, attempts, made } = processOfHeld(4)
    for (const endpoint of all) {
      proveEndpoint(endpoints, endpoint.webhookId)
      // The burst for the first one is committed before all others.
      await endpoint.commit(20)
    }
    attempts.release()
    dispatcher.begin()
    await made(60)
    expect(attempts.maxInFlight()).to.equal(4)
    const half = [...attempts.begun.values()].slice(4, 34)
    for (const { webhookId } of all)
      expect(half.filter((one) => one === webhookId).length, `of ${webhookId}`).to.be.within(6, 14)
  })

  it('leave an endpoint slower than a second to workflows on the slow queue, pulled for its free slots', async () => {
    const endpoint = await suite.endpoint(async () => {
      await delay(SLOW_ANSWER_MS)
      return 200
    })
    const { publish, dispatcher } = suite.process(measured())
    await publish(endpoint)
    await completed(1)
    const reserved = dispatcher.reserve([audienceOf(endpoint)], 10)
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
      if (endpoint.receiver.posts.length === 1) await delay(SLOW_ANSWER_MS)
      return 200
    })
    const { publish, dispatcher, endpoints } = suite.process(measured())
    await publish(endpoint)
    await completed(1)
    expect((await publish(endpoint))[0]!.claim).to.equal(null)
    // As an attempt elsewhere in this process would find it.
    proveEndpoint(endpoints, endpoint.webhookId, 1)
    await dispatcher.pull()
    await completed(2)
    // The second POST may have been slow on a busy machine.
    proveEndpoint(endpoints, endpoint.webhookId, 1)
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
