import { expect } from 'chai'
import { requestRetry } from '../../../src/db/queries/retry-requests.ts'
import type { MakeAttempt } from '../../../src/deliveries/attempt/attempt-request.ts'
import { wakeWorkflows } from '../../../src/deliveries/retry-jobs/wake-workflows.ts'
import { SWEEP_DELAY_MS } from '../../../src/deliveries/lease-times.ts'
import { eventually } from '../../helpers/eventually.ts'
import { TEST_PROCESS } from '../../helpers/database/factories.ts'
import { createDeferredAnswers } from '../../helpers/receivers/deferred-answers.ts'
import { createReceiver } from '../../helpers/receivers/receiver.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'
import { onlyNew } from '../../helpers/database/use-sealed-secrets.ts'

/** From the end of an attempt, as its receiver saw it, to the end as we saw it. */
const SEEN_WITHIN_MS = 150

describe('first attempts in `direct`', () => {
  const suite = useInlineAttempts()
  const reaches = (deliveryId: string, expected: object) =>
    eventually(async () => expect(await suite.row(deliveryId)).to.include(expected))

  it('post without a workflow, and leave a completed row that needs no sweep', async () => {
    const endpoint = await suite.endpoint()
    const delivery = await endpoint.publishOne()
    suite.process().dispatcher.start([delivery])
    await reaches(delivery.deliveryId, {
      state: 'completed',
      attempts: 1,
      claims: 0,
      owner: null,
      lease_until: null,
      started_at: null,
      sweep_at: null,
    })
    expect(endpoint.receiver.posts).to.have.length(1)
    expect(endpoint.receiver.posts[0]!.body).to.deep.equal(delivery.fresh!.body)
    expect(await suite.attemptsOf(delivery.deliveryId)).to.have.length(1)
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('start a workflow after a failure, from attempt 2 on, due a second after the first ended', async () => {
    const endpoint = await suite.endpoint(() => 503)
    const delivery = await endpoint.publishOne()
    const { deliveryId, webhookId } = delivery
    suite.process().dispatcher.start([delivery])
    await eventually(() => expect(suite.temporal.starts).to.have.length(1))
    const { next, ...start } = suite.temporal.starts[0]!
    expect(start).to.deep.equal({ deliveryId, webhookId, allowRestart: false, kind: 'retry' })
    expect(next.number).to.equal(2)
    const [post] = endpoint.receiver.posts
    expect(next.dueAtMs! - 1_000 - post!.answeredAt).to.be.within(0, SEEN_WITHIN_MS)
    const row = await eventually(async () => {
      const noted = await suite.row(deliveryId)
      expect(noted.started_at).not.to.equal(null)
      return noted
    })
    expect(row).to.include({ state: 'waiting', attempts: 1 })
    expect(row.next_attempt_at!.getTime()).to.equal(next.dueAtMs)
    expect(row.sweep_at!.getTime()).to.equal(next.dueAtMs! + SWEEP_DELAY_MS)
    expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
  })

  it('leave the workflow of a failed delivery to the sweeper while Temporal is unavailable', async () => {
    const endpoint = await suite.endpoint(() => 503)
    const delivery = await endpoint.publishOne()
    const { deliveryId } = delivery
    const { dispatcher, sweep } = suite.process()
    suite.temporal.isUnavailable = true
    dispatcher.start([delivery])
    await reaches(deliveryId, { state: 'waiting', attempts: 1, started_at: null })
    const row = await suite.row(deliveryId)
    const dueAtMs = row.next_attempt_at!.getTime()
    expect(row.sweep_at!.getTime()).to.equal(dueAtMs + 5_000)
    suite.temporal.isUnavailable = false
    await suite.age(deliveryId)
    await eventually(async () => {
      await sweep.runOnce()
      expect(suite.temporal.starts).to.have.length(1)
    })
    expect(suite.temporal.starts[0]).to.deep.include({ deliveryId, next: { number: 2, dueAtMs } })
    expect((await suite.row(deliveryId)).started_at).not.to.equal(null)
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('are left to workflows for a webhook with an open incident, whichever process saw it fail', async () => {
    const endpoint = await suite.endpoint(() => 500)
    const failing = await endpoint.publishOne()
    suite.process().dispatcher.start([failing])
    await reaches(failing.deliveryId, { state: 'waiting' })
    endpoint.answerWith(() => 200)
    const next = await endpoint.publishOne()
    expect(next.hasOpenIncident).to.equal(true)
    // A process that has seen nothing of the endpoint.
    suite.process().dispatcher.start([next])
    await eventually(() => expect(suite.temporal.startsOf(next.deliveryId)).to.have.length(1))
    expect(suite.temporal.startsOf(next.deliveryId)[0]).to.deep.include({
      next: { number: 1, dueAtMs: null },
      kind: 'unproven',
    })
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('pass a delivery to a workflow after a fault of Posthorn, and use up no attempt', async () => {
    const endpoint = await suite.endpoint()
    const delivery = await endpoint.publishOne()
    const { deliveryId } = delivery
    suite.process({ attempts: { secretBox: onlyNew } }).dispatcher.start([delivery])
    await eventually(() => expect(suite.temporal.startsOf(deliveryId)).to.have.length(1))
    expect(suite.temporal.startsOf(deliveryId)[0]!.next).to.deep.equal({ number: 1, dueAtMs: null })
    await eventually(async () => expect((await suite.row(deliveryId)).started_at).not.to.equal(null))
    expect(await suite.row(deliveryId)).to.include({ state: 'pending', attempts: 0, claims: 0 })
    expect(endpoint.receiver.posts).to.have.length(0)
  })

  it('keep 64 MiB of waiting payloads in memory, and read those beyond that again', async () => {
    const endpoint = await suite.endpoint()
    const answers = createDeferredAnswers()
    const first = await suite.endpoint(answers.answer)
    const deliveries = await endpoint.publish(2)
    const large = Buffer.alloc(33 * 1024 * 1024)
    let kept = 0
    const watching =
      (make: MakeAttempt): MakeAttempt =>
      (request, signals, inline) => {
        if (inline?.claim?.body !== large) return make(request, signals, inline)
        kept++
        // It need not go over the wire.
        return Promise.resolve({ state: 'completed', attempts: 1, failureCode: null, statusCode: 200 })
      }
    const { dispatcher } = suite.process({ dispatcher: { slots: 1 }, watching })
    dispatcher.start(await first.publish(1))
    await eventually(() => expect(answers.pending()).to.equal(1))
    const readAtMs = performance.now()
    dispatcher.start(deliveries.map((one) => ({ ...one, readAtMs, fresh: { ...one.fresh!, body: large } })))
    answers.release()
    await eventually(async () => expect(await suite.count(`state = 'completed'`)).to.equal(2))
    expect(kept).to.equal(1)
    expect(endpoint.receiver.posts.map(({ body }) => body)).to.deep.equal([deliveries[1]!.fresh!.body])
  })

  it('signal no workflow for a retry that is requested before the first attempt, and make that attempt', async () => {
    const endpoint = await suite.endpoint()
    const { organisationId, webhookId } = endpoint
    const delivery = await endpoint.publishOne()
    const asked = await requestRetry(
      suite.database.dataSource,
      organisationId,
      webhookId,
      delivery.deliveryId,
    )
    expect(asked).to.include({ isFirst: true, attempts: 0 })
    const { workflows } = suite.temporal
    await wakeWorkflows({ workflows, logger: silentLogger }, { organisationId, webhookId }, [asked!])
    expect(suite.temporal.woken).to.have.length(0)
    suite.process().dispatcher.start([delivery])
    await reaches(delivery.deliveryId, { state: 'completed', attempts: 1 })
    expect(endpoint.receiver.posts).to.have.length(1)
  })

  it('complete a confirmed delivery although the webhook was disabled meanwhile', async () => {
    const endpoint = await suite.endpoint()
    endpoint.answerWith(async () => {
      await endpoint.switchOff()
      return 200
    })
    const delivery = await endpoint.publishOne()
    const { deliveryId } = delivery
    suite.process().dispatcher.start([delivery])
    await reaches(deliveryId, { state: 'completed', attempts: 1, sweep_at: null })
    expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
  })

  it('stop a failed delivery whose webhook was disabled meanwhile, with its attempt recorded', async () => {
    const endpoint = await suite.endpoint()
    endpoint.answerWith(async () => {
      await endpoint.switchOff()
      return 500
    })
    const delivery = await endpoint.publishOne()
    const { deliveryId } = delivery
    suite.process().dispatcher.start([delivery])
    await reaches(deliveryId, { state: 'stopped', attempts: 1 })
    expect(await suite.attemptsOf(deliveryId)).to.have.length(1)
    expect(suite.temporal.starts).to.have.length(0)
  })

  it('post nothing when this process disabled the webhook before the POST', async () => {
    const endpoint = await suite.endpoint()
    const { dispatcher, webhooks } = suite.process()
    const delivery = await endpoint.publishOne()
    await endpoint.switchOff()
    webhooks.invalidate(endpoint.webhookId)
    dispatcher.start([delivery])
    await eventually(() =>
      expect(dispatcher.load()).to.deep.equal({ queued: 0, startsInFlight: 0, inlineInFlight: 0 }),
    )
    expect(await suite.row(delivery.deliveryId)).to.include({ state: 'stopped', attempts: 0 })
    expect(endpoint.receiver.posts).to.have.length(0)
    expect(suite.temporal.starts).to.have.length(0)
  })

  for (const [when, ageMs] of [
    ['by this process', 0],
    ['more than a second ago by another process', 1_001],
  ] as const) {
    it(`post nothing when the event key was removed from the subscription ${when}`, async () => {
      const endpoint = await suite.endpoint()
      const { dispatcher, webhooks } = suite.process()
      const delivery = await endpoint.publishOne()
      await suite.database.dataSource.query('UPDATE webhook SET subscribed_event_keys = $2 WHERE id = $1', [
        endpoint.webhookId,
        ['invoice:paid'],
      ])
      if (ageMs === 0) webhooks.invalidate(endpoint.webhookId)
      dispatcher.start([{ ...delivery, readAtMs: delivery.readAtMs - ageMs }])
      await reaches(delivery.deliveryId, { state: 'stopped', attempts: 0 })
      expect(endpoint.receiver.posts).to.have.length(0)
    })
  }

  it('name the trace of the event in the log line, claimed or not', async () => {
    const lines: Record<string, unknown>[] = []
    const note = (fields: object): void => void lines.push(fields as Record<string, unknown>)
    const logger = { debug: note, info: note, warn: note, error: note }
    const { dispatcher } = suite.process({ attempts: { logger } })
    for (const changes of [{}, { fresh: null }]) {
      const delivery = await (await suite.endpoint()).publishOne()
      dispatcher.start([{ ...delivery, ...changes }])
      await reaches(delivery.deliveryId, { state: 'completed' })
    }
    const attempted = () => lines.filter(({ event }) => event === 'delivery.attempted')
    await eventually(() =>
      expect(attempted().map(({ traceId }) => traceId)).to.deep.equal(['trace-1', 'trace-1']),
    )
  })

  it('post to the new URL when this process changed it before the POST', async () => {
    const [endpoint, moved] = [await suite.endpoint(), await createReceiver()]
    const { dispatcher, webhooks } = suite.process()
    const delivery = await endpoint.publishOne()
    await endpoint.moveTo(moved.url)
    webhooks.invalidate(endpoint.webhookId)
    dispatcher.start([delivery])
    await reaches(delivery.deliveryId, { state: 'completed' })
    expect(moved.posts).to.have.length(1)
    expect(endpoint.receiver.posts).to.have.length(0)
    expect((await suite.attemptsOf(delivery.deliveryId))[0]).to.include({ url: moved.url })
    await moved.close()
  })

  it('claim what waited for more than a second, and so apply a change by another process', async () => {
    const [endpoint, moved] = [await suite.endpoint(), await createReceiver()]
    const delivery = await endpoint.publishOne()
    await endpoint.moveTo(moved.url)
    suite.process().dispatcher.start([{ ...delivery, readAtMs: delivery.readAtMs - 1_001 }])
    await reaches(delivery.deliveryId, { state: 'completed', claims: 0, started_at: null })
    expect(moved.posts).to.have.length(1)
    expect(endpoint.receiver.posts).to.have.length(0)
    await moved.close()
  })

  it('are made under the lease of the commit, without a claim, shortly after it', async () => {
    const endpoint = await suite.endpoint()
    const rows: object[] = []
    endpoint.answerWith(async (_index, post) => {
      rows.push(await suite.row(String(post.headers['x-webhook-event-id'])))
      return 200
    })
    const fresh = await endpoint.publishOne()
    const { dispatcher } = suite.process()
    dispatcher.start([fresh])
    await reaches(fresh.deliveryId, { state: 'completed' })
    const old = await endpoint.publishOne()
    dispatcher.start([{ ...old, fresh: null }])
    await reaches(old.deliveryId, { state: 'completed' })
    expect(rows[0]).to.include({ state: 'pending', claims: 0, owner: TEST_PROCESS })
    expect(rows[1]).to.include({ state: 'in_progress', claims: 1, started_at: null })
  })

  it('post nothing in a process that makes no attempts', async () => {
    const endpoint = await suite.endpoint()
    const delivery = await endpoint.publishOne()
    suite.process({ dispatcher: { makesAttempts: false } }).dispatcher.start([delivery])
    await eventually(() => expect(suite.temporal.startsOf(delivery.deliveryId)).to.have.length(1))
    expect(endpoint.receiver.posts).to.have.length(0)
  })
})
