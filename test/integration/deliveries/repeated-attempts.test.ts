import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { AttemptDependencies, AttemptRequest } from '../../../src/deliveries/attempt/attempt-request.ts'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { claimAttempt, renewClaims } from '../../../src/db/queries/claims.ts'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import { requestRetry } from '../../../src/db/queries/retry-requests.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import type { PostResult } from '../../../src/outbound/http-client.ts'
import { attemptDependencies } from '../../helpers/deliveries/attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createDeferredAnswers } from '../../helpers/receivers/deferred-answers.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

const never = new AbortController().signal
const NEVER = { cancelled: never, shutDown: never }

const FAILED: PostResult = {
  succeeded: false,
  failureCode: 'timeout',
  statusCode: null,
  error: 'No answer within 15 seconds.',
  startedAt: new Date(),
  durationMs: 25_000,
  response: null,
  isInconclusive: false,
}
const PAUSED: PostResult = { ...FAILED, isInconclusive: true }
const CONFIRMED: PostResult = { ...FAILED, succeeded: true, failureCode: null, statusCode: 200, error: null }

describe('an attempt that is repeated under its number', () => {
  const suite = useInlineAttempts()
  let delivery: DeliveryToStart
  let posts: number

  beforeEach(async () => {
    delivery = await (await suite.endpoint()).publishOne()
    posts = 0
  })

  const change = (assignments: string) =>
    suite.database.dataSource.query(`UPDATE delivery SET ${assignments} WHERE id = $1`, [delivery.deliveryId])
  const request = (changes: Partial<AttemptRequest> = {}): AttemptRequest => {
    const { organisationId, deliveryId, webhookId } = delivery
    return {
      organisationId,
      deliveryId,
      webhookId,
      number: 1,
      waitUntil: null,
      onlyIfDue: false,
      kind: 'first',
      ...changes,
    }
  }
  /** Attempts whose POSTs end with `results`, in order. */
  function attempts(results: (() => Promise<PostResult> | PostResult)[]): AttemptDependencies {
    const post = async (): Promise<PostResult> => results[posts++]!()
    return {
      ...attemptDependencies(suite.database.dataSource),
      httpClient: { post, close: () => Promise.resolve() },
    }
  }
  const outcomes = async (): Promise<string[]> =>
    (await suite.attemptsOf(delivery.deliveryId)).map(
      ({ number, outcome }) => `${String(number)} ${String(outcome)}`,
    )

  it('posts again when this process was paused in mid-POST, and records the outcome of that', async () => {
    let repeated = 0
    const metrics = { ...createMetrics(), attemptRepeated: () => (repeated += 1) }
    const dependencies = { ...attempts([() => PAUSED, () => PAUSED, () => CONFIRMED]), metrics }
    expect(await createAttempt(dependencies)(request(), NEVER)).to.include({
      state: 'completed',
      attempts: 1,
    })
    expect([posts, repeated]).to.deep.equal([3, 2])
    expect(await outcomes()).to.deep.equal(['1 succeeded'])
    expect(await suite.row(delivery.deliveryId)).to.include({ state: 'completed', claims: 0 })
  })

  it("stays the user's retry after its worker was lost", async () => {
    const { organisationId, webhookId, deliveryId } = delivery
    await createAttempt(attempts([() => FAILED]))(request(), NEVER)
    await requestRetry(suite.database.dataSource, organisationId, webhookId, deliveryId)
    await claimAttempt(
      suite.database.dataSource,
      { organisationId, deliveryId, number: 2 },
      { owner: randomUUID(), leaseMs: 0, sweepAfterMs: 60_000, onlyIfDue: true, inline: false },
    )
    posts = 0
    await createAttempt(attempts([() => CONFIRMED]))(request({ number: 2 }), NEVER)
    const trigger = (await suite.attemptsOf(deliveryId)).map((attempt) => attempt['trigger'])
    expect(trigger).to.deep.equal(['schedule', 'retry'])
  })

  it('repeats no POST when another run confirmed the delivery during the pause', async () => {
    const confirm = async (): Promise<PostResult> => {
      await change(`lease_until = now() - interval '1 ms'`)
      await createAttempt(attempts([() => PAUSED, () => CONFIRMED]))(request(), NEVER)
      return PAUSED
    }
    const outcome = await createAttempt(attempts([confirm]))(request(), NEVER)
    expect(outcome).to.include({ state: 'completed', attempts: 1 })
    expect(posts).to.equal(2)
  })

  it('waits for the run that owns the row, and returns its outcome, when its own failure is late', async () => {
    const answers = createDeferredAnswers()
    const taking: Promise<unknown>[] = []
    const metrics = createMetrics()
    let superseded = 0
    const lose = async (): Promise<PostResult> => {
      await change(`lease_until = now() - interval '1 ms'`)
      const post = async (): Promise<PostResult> => {
        await answers.answer(0, {} as never, {} as never)
        return CONFIRMED
      }
      taking.push(createAttempt(attempts([post, post]))(request(), NEVER))
      await eventually(() => expect(posts).to.equal(2))
      return FAILED
    }
    const dependencies = {
      ...attempts([lose]),
      metrics: { ...metrics, attemptSuperseded: () => (superseded += 1) },
    }
    const outcome = createAttempt(dependencies)(request(), NEVER)
    await eventually(() => expect(superseded).to.equal(1))
    answers.release()
    await Promise.all(taking)
    expect(await outcome).to.include({ state: 'completed', attempts: 1 })
    expect(await outcomes()).to.deep.equal(['1 succeeded'])
    expect(posts).to.equal(2)
  })

  it('closes the incident that another run opened with a failure, when the answer was a confirmation after all', async () => {
    const { dataSource } = suite.database
    const lose = async (): Promise<PostResult> => {
      await change(`lease_until = now() - interval '1 ms'`)
      await createAttempt(attempts([() => FAILED, () => FAILED]))(request(), NEVER)
      expect(await suite.row(delivery.deliveryId)).to.include({ state: 'waiting', attempts: 1 })
      return CONFIRMED
    }
    expect(await createAttempt(attempts([lose]))(request(), NEVER)).to.include({ state: 'completed' })
    expect(await outcomes()).to.deep.equal(['1 succeeded'])
    const open = await dataSource.query<object[]>(
      'SELECT 1 FROM incident WHERE webhook_id = $1 AND closed_at IS NULL',
      [delivery.webhookId],
    )
    expect(open).to.have.length(0)
  })

  it('waits for the remaining time when the row is not due yet', async () => {
    await change(
      `state = 'waiting', attempts = 1, owner = NULL, next_attempt_at = clock_timestamp() + interval '400 ms'`,
    )
    const { next_attempt_at: dueAt } = await suite.row(delivery.deliveryId)
    let postedAtMs = 0
    const post = (): PostResult => {
      postedAtMs = Date.now()
      return CONFIRMED
    }
    // A process whose idea of the clock is three seconds ahead.
    const dependencies = { ...attempts([post]), clock: { nowMs: () => Date.now() + 3_000 } }
    const waitUntil = { dueAtMs: dueAt!.getTime(), maxWaitMs: 1_000 }
    expect(await createAttempt(dependencies)(request({ number: 2, waitUntil }), NEVER)).to.include({
      state: 'completed',
    })
    expect(postedAtMs - dueAt!.getTime()).to.be.within(-5, 2_000)
  })

  it('returns a retry that is due much later to its workflow, which waits again', async () => {
    await change(
      `state = 'waiting', attempts = 5, next_attempt_at = now() + interval '5 minutes', owner = NULL`,
    )
    const waitUntil = { dueAtMs: Date.now() - 1, maxWaitMs: 1_000 }
    const outcome = await createAttempt(attempts([]))(request({ number: 6, waitUntil }), NEVER)
    expect(outcome).to.include({ state: 'waiting', attempts: 5, immediately: false })
    if (outcome.state === 'waiting') expect(outcome.sinceEndMs).to.be.below(1_000)
  })

  it('starts at once when it was requested during a first attempt that then failed', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    const { organisationId, webhookId } = endpoint
    const one = await endpoint.publishOne()
    suite.process().dispatcher.start([one])
    await eventually(() => expect(answers.pending()).to.equal(1))
    expect(await suite.row(one.deliveryId)).to.include({ state: 'pending' })
    expect(
      await requestRetry(suite.database.dataSource, organisationId, webhookId, one.deliveryId),
    ).not.to.equal(null)
    answers.release(503)
    await eventually(() => expect(suite.temporal.startsOf(one.deliveryId)).to.have.length(1))
    expect(suite.temporal.startsOf(one.deliveryId)[0]!.next).to.deep.equal({ number: 2, dueAtMs: null })
    const row = await suite.row(one.deliveryId)
    expect(row).to.include({ state: 'waiting', attempts: 1, retry_requested: true })
    expect(row.next_attempt_at!.getTime()).to.be.at.most(Date.now())
    const [attempt] = await suite.attemptsOf(one.deliveryId)
    expect(attempt).to.include({ trigger: 'schedule', outcome: 'failed' })
  })
})

describe('an outcome that the database refuses', () => {
  const suite = useInlineAttempts()

  it('renews the lease of its row until it is recorded', async function () {
    this.timeout(30_000)
    const { dataSource } = suite.database
    const endpoint = await suite.endpoint()
    const { deliveryId, organisationId, webhookId } = await endpoint.publishOne()
    let refused = 0
    const dependencies = {
      ...attemptDependencies(dataSource, 100),
      metrics: { ...createMetrics(), attemptNotRecorded: () => (refused += 1) },
      recordFirstSuccess: () =>
        refused < 5
          ? Promise.reject(Object.assign(new Error('disk full'), { code: '53100' }))
          : Promise.resolve(true),
    }
    const request: AttemptRequest = {
      organisationId,
      webhookId,
      deliveryId,
      number: 1,
      waitUntil: null,
      onlyIfDue: false,
      kind: 'first',
    }
    const outcome = createAttempt(dependencies)(request, NEVER)
    await eventually(() => expect(refused).to.equal(1))
    const { lease_until: before } = await suite.row(deliveryId)
    await eventually(async () => {
      const { lease_until: after } = await suite.row(deliveryId)
      expect(after!.getTime()).to.be.above(before!.getTime())
    })
    expect(await outcome).to.include({ state: 'completed' })
    expect(endpoint.receiver.posts).to.have.length(1)
    await dependencies.httpClient.close()
  })

  it('renews no row that another run owns', async () => {
    const endpoint = await suite.endpoint()
    const { deliveryId } = await endpoint.publishOne()
    const before = await suite.row(deliveryId)
    await renewClaims(
      suite.database.dataSource,
      [{ deliveryId, owner: randomUUID(), sweepAfterMs: 1 }],
      999_000,
    )
    expect(await suite.row(deliveryId)).to.deep.equal(before)
  })
})
