import { expect } from 'chai'
import { requestRetries } from '../../../src/deliveries/protocol/change-deliveries.ts'
import { SWEEP_DELAY_MS } from '../../../src/deliveries/protocol/sweep.ts'
import { createShutdown } from '../../../src/shutdown.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createDeferredAnswers, createReceiver } from '../../helpers/receivers/receiver.ts'
import { reservationOf, useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'
import { onlyNew } from '../../helpers/database/use-sealed-secrets.ts'

const AT_REST = { queued: 0, startsInFlight: 0, inlineInFlight: 0 }

describe('first attempts in `direct`', () => {
  const suite = useInlineAttempts()
  const reaches = (deliveryId: string, expected: object) =>
    eventually(async () => expect(await suite.row(deliveryId)).to.include(expected))
  /** How late its next attempt is when the row is swept. */
  const lateSweepMs = async (deliveryId: string): Promise<number> => {
    const { sweep_at, next_attempt_at } = await suite.row(deliveryId)
    return sweep_at!.getTime() - next_attempt_at!.getTime()
  }

  it('post without a workflow, and leave a completed row that needs no sweep', async () => {
    const endpoint = await suite.endpoint()
    const [delivery] = await suite.process().publish(endpoint)
    const ended = { state: 'completed', attempts: 1, runs: 0, owner: null, lease_until: null }
    await reaches(delivery!.deliveryId, { ...ended, workflow_started_at: null, sweep_at: null })
    expect(endpoint.receiver.posts).to.have.length(1)
    expect(endpoint.receiver.posts[0]!.body).to.deep.equal(delivery!.claim!.body)
    expect(await suite.attemptsOf(delivery!.deliveryId)).to.have.length(1)
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('are in progress from their commit on, or from their claim', async () => {
    const endpoint = await suite.endpoint()
    const rows: object[] = []
    endpoint.answerWith(async (_index, post) => {
      rows.push(await suite.row(String(post.headers['x-webhook-event-id'])))
      return 200
    })
    const { publish, dispatcher } = suite.process()
    const [committed] = await publish(endpoint)
    expect(committed!.claim).not.to.equal(null)
    await reaches(committed!.deliveryId, { state: 'completed' })
    const [pending] = await endpoint.commit(1)
    expect(pending!.claim).to.equal(null)
    await dispatcher.pull()
    await reaches(pending!.deliveryId, { state: 'completed' })
    expect(rows[0]).to.include({ state: 'in_progress', runs: 1, owner: committed!.claim!.owner })
    expect(rows[1]).to.include({ state: 'in_progress', runs: 1, workflow_started_at: null })
  })

  it('start a workflow after a failure, from attempt 2 on, due a second after the first ended', async () => {
    const endpoint = await suite.endpoint(() => 503)
    const [{ deliveryId, webhookId } = { deliveryId: '', webhookId: '' }] = await suite
      .process()
      .publish(endpoint)
    await eventually(() => expect(suite.temporal.starts).to.have.length(1))
    const { next, ...start } = suite.temporal.starts[0]!
    expect(start).to.deep.equal({ deliveryId, webhookId, queue: 'retry' })
    expect(next.number).to.equal(2)
    const [post] = endpoint.receiver.posts
    expect(next.dueAtMs! - 1_000).to.be.within(post!.answeredAt, Date.now())
    // As PostgreSQL measured it: the clock of a process that was suspended is behind.
    expect(next.waitMs).to.be.at.most(1_000)
    const row = await eventually(async () => {
      const noted = await suite.row(deliveryId)
      expect(noted.workflow_started_at).not.to.equal(null)
      return noted
    })
    expect(row).to.include({ state: 'waiting', attempts: 1 })
    expect(row.next_attempt_at!.getTime()).to.equal(next.dueAtMs)
    const dueAtMs = Math.max(next.dueAtMs!, row.workflow_started_at!.getTime())
    expect(row.sweep_at!.getTime()).to.equal(dueAtMs + SWEEP_DELAY_MS)
  })

  it('are made inline at an endpoint that refuses at once, with an open incident too', async () => {
    const endpoint = await suite.endpoint(() => 503)
    const { publish, dispatcher } = suite.process()
    const first = await publish(endpoint)
    await reaches(first[0]!.deliveryId, { state: 'waiting' })
    await publish(endpoint, 20)
    await eventually(async () => {
      // What could not begin within a second of its commit, on a busy machine.
      await dispatcher.pull()
      expect(await suite.count(`state = 'waiting' AND attempts = 1`)).to.equal(21)
    })
    expect(suite.temporal.starts.every(({ next }) => next.number === 2)).to.equal(true)
  })

  it('time out, and are retried by any process within seconds where their workflow is not started', async () => {
    const endpoint = await suite.endpoint(() => null)
    suite.temporal.isUnavailable = true
    const [{ deliveryId } = { deliveryId: '' }] = await suite
      .process({ attemptTimeoutMs: 200 })
      .publish(endpoint)
    await reaches(deliveryId, { state: 'waiting', attempts: 1, workflow_started_at: null })
    expect(await lateSweepMs(deliveryId)).to.equal(5_000)
  })

  it('make the retry of a delivery whose workflow could not be started, when it is late', async () => {
    const endpoint = await suite.endpoint((index) => (index === 0 ? 503 : 200))
    const { publish, dispatcher } = suite.process()
    suite.temporal.isUnavailable = true
    const [delivery] = await publish(endpoint)
    const { deliveryId } = delivery!
    await reaches(deliveryId, { state: 'waiting', attempts: 1, workflow_started_at: null })
    expect(await lateSweepMs(deliveryId)).to.equal(5_000)
    await dispatcher.pull()
    expect(await suite.row(deliveryId)).to.include({ state: 'waiting', attempts: 1 })
    await suite.database.dataSource.query(
      `UPDATE delivery SET next_attempt_at = delivery_now(), sweep_at = delivery_now() - interval '1 ms'`,
    )
    await dispatcher.pull()
    await reaches(deliveryId, { state: 'completed', attempts: 2 })
  })

  it('pass a delivery to a workflow after a fault of Posthorn, and use up no attempt', async () => {
    const endpoint = await suite.endpoint()
    const { publish, dispatcher } = suite.process({ attempts: { secretBox: onlyNew } })
    const [{ deliveryId } = { deliveryId: '' }] = await publish(endpoint)
    await reaches(deliveryId, { state: 'pending', attempts: 0, runs: 0 })
    await eventually(async () => {
      await dispatcher.pull()
      expect(suite.temporal.startsOf(deliveryId)).to.have.length(1)
    })
    expect(suite.temporal.startsOf(deliveryId)[0]!.next).to.deep.equal({ number: 1, dueAtMs: null })
    await eventually(async () => expect((await suite.row(deliveryId)).workflow_started_at).not.to.equal(null))
    expect(endpoint.receiver.posts).to.have.length(0)
  })

  it('are the attempt of a retry that is requested before them', async () => {
    const endpoint = await suite.endpoint()
    const { organisationId, webhookId } = endpoint
    const [{ deliveryId } = { deliveryId: '' }] = await endpoint.commit(1)
    await requestRetries(suite.database.dataSource, {
      organisationId,
      webhookId,
      ids: [deliveryId],
      states: ['pending'],
    })
    await suite.process().dispatcher.pull()
    await reaches(deliveryId, { state: 'completed', attempts: 1 })
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  for (const [answer, state] of [
    [200, 'completed'],
    [500, 'stopped'],
  ] as const)
    it(`end as ${state} when the webhook is disabled meanwhile and it answers ${answer}`, async () => {
      const endpoint = await suite.endpoint()
      endpoint.answerWith(async () => {
        await endpoint.switchOff()
        return answer
      })
      const [{ deliveryId } = { deliveryId: '' }] = await suite.process().publish(endpoint)
      await reaches(deliveryId, { state, attempts: 1, sweep_at: null })
      expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
      expect(suite.temporal.starts).to.have.length(0)
    })

  it('post nothing when this process disabled the webhook before the POST', async () => {
    const [endpoint, answers] = [await suite.endpoint(), createDeferredAnswers()]
    endpoint.answerWith(answers.answer)
    const { publish, dispatcher, webhookChanges } = suite.process()
    await publish(endpoint)
    await eventually(() => expect(answers.pending()).to.equal(1))
    const [next] = await endpoint.commit(1, reservationOf(1))
    dispatcher.start([next!])
    await endpoint.switchOff()
    webhookChanges.changed(endpoint.webhookId)
    answers.release()
    await reaches(next!.deliveryId, { state: 'pending', attempts: 0, runs: 0 })
    await dispatcher.pull()
    await reaches(next!.deliveryId, { state: 'stopped', attempts: 0 })
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('post to the new URL when this process changed it before the POST', async () => {
    const [endpoint, moved] = [await suite.endpoint(), await createReceiver()]
    const { dispatcher, webhookChanges } = suite.process()
    const [delivery] = await endpoint.commit(1, reservationOf(1))
    await endpoint.moveTo(moved.url)
    webhookChanges.changed(endpoint.webhookId)
    dispatcher.start([delivery!])
    await eventually(async () => {
      await dispatcher.pull()
      expect(await suite.row(delivery!.deliveryId)).to.include({ state: 'completed' })
    })
    expect([moved.posts.length, endpoint.receiver.posts.length]).to.deep.equal([1, 0])
    await moved.close()
  })

  it('release what could not begin within a second of its commit, and claim it anew', async () => {
    const endpoint = await suite.endpoint()
    const { dispatcher } = suite.process()
    const [delivery] = await endpoint.commit(1, reservationOf(1))
    delivery!.claim!.claimedAtMs -= 1_001
    dispatcher.start([delivery!])
    await reaches(delivery!.deliveryId, { state: 'pending', runs: 0, owner: null })
    expect(endpoint.receiver.posts).to.have.length(0)
    await dispatcher.pull()
    await reaches(delivery!.deliveryId, { state: 'completed', attempts: 1 })
  })

  it('release what waits, at once, on shutdown, while POSTs in flight finish', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const { publish, dispatcher } = suite.process({ shutdown: createShutdown(5_000) })
    const [first] = await publish(endpoint)
    await eventually(() => expect(answers.pending()).to.equal(1))
    dispatcher.start(await endpoint.commit(5, reservationOf(5)))
    const stopped = dispatcher.stop()
    await eventually(async () =>
      expect(await suite.count(`state = 'pending' AND owner IS NULL AND sweep_at <= now()`)).to.equal(5),
    )
    answers.release()
    await stopped
    await dispatcher.stop()
    expect(await suite.row(first!.deliveryId)).to.include({ state: 'completed', attempts: 1 })
    await suite.process().dispatcher.pull()
    await eventually(async () => expect(await suite.count(`state = 'completed'`)).to.be.above(1))
  })

  it('are left to others after a POST that is cut off on shutdown, and repeated under the same number', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const { publish, dispatcher } = suite.process()
    const [{ deliveryId } = { deliveryId: '' }] = await publish(endpoint)
    await eventually(() => expect(answers.pending()).to.equal(1))
    endpoint.answerWith(() => 200)
    await dispatcher.stop()
    expect(await suite.row(deliveryId)).to.include({ state: 'in_progress', attempts: 0, runs: 1 })
    await suite.process().dispatcher.pull()
    await reaches(deliveryId, { state: 'completed', attempts: 1 })
    expect(endpoint.receiver.posts).to.have.length(2)
    expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
  })

  it('are taken up by another process once the lease of a lost one is over', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const [{ deliveryId } = { deliveryId: '' }] = await suite.process().publish(endpoint)
    await eventually(() => expect(answers.pending()).to.equal(1))
    endpoint.answerWith(() => 200)
    const other = suite.process()
    await other.dispatcher.pull()
    expect(endpoint.receiver.posts).to.have.length(1)
    await suite.age(deliveryId)
    await other.dispatcher.pull()
    await reaches(deliveryId, { state: 'completed', attempts: 1 })
    // The first process, which was only slow, gets its answer now.
    answers.release(500)
    await eventually(() =>
      expect(endpoint.receiver.posts.every((post) => post.answeredAt > 0)).to.equal(true),
    )
    await reaches(deliveryId, { state: 'completed', attempts: 1 })
    expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
  })

  it('are left at once to others by a process without a worker', async () => {
    const endpoint = await suite.endpoint()
    const { publish, dispatcher } = suite.process({ dispatcher: { makesAttempts: false } })
    const [delivery] = await publish(endpoint)
    expect(delivery!.claim).to.equal(null)
    expect(dispatcher.load()).to.deep.equal(AT_REST)
    await suite.process().dispatcher.pull()
    await reaches(delivery!.deliveryId, { state: 'completed', attempts: 1 })
    expect(suite.temporal.startsOf(delivery!.deliveryId)).to.have.length(0)
  })
})
