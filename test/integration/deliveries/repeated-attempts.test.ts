import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { type AttemptDependencies, createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoint-concurrency.ts'
import { requestRetries } from '../../../src/deliveries/protocol/change-deliveries.ts'
import { renewLeases } from '../../../src/deliveries/protocol/claim.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import type { AttemptRequest } from '../../../src/domain/attempt-outcome.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import type { PostResult } from '../../../src/outbound/http-client.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from '../../helpers/deliveries/attempts.ts'
import { setRow, type RowState } from '../../helpers/deliveries/set-row.ts'
import { useAttempts } from '../../helpers/deliveries/use-attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createDeferredAnswers } from '../../helpers/receivers/receiver.ts'

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
  const suite = useAttempts()
  let delivery: CommittedDelivery
  let posts: number

  beforeEach(async () => {
    delivery = (await suite.publish()).delivery
    posts = 0
  })

  const set = (to: RowState) => setRow(suite.database.dataSource, delivery.deliveryId, to)
  const row = () => suite.row(delivery.deliveryId)
  /** As if the process of the run that has the row were gone for longer than its lease. */
  const endLease = () =>
    suite.database.dataSource.query(
      `UPDATE delivery SET lease_until = delivery_now() - interval '1 ms' WHERE id = $1`,
      [delivery.deliveryId],
    )
  /** Makes the attempt in a process whose POSTs end with `results`, in order. */
  const attempt = (
    results: (() => Promise<PostResult> | PostResult)[],
    {
      changes = {},
      process = {},
    }: { changes?: Partial<AttemptRequest>; process?: Partial<AttemptDependencies> } = {},
  ) => {
    const post = async (): Promise<PostResult> => {
      posts += 1
      return results.shift()!()
    }
    const httpClient = { post, close: () => Promise.resolve() }
    const dependencies = { ...attemptDependencies(suite.database.dataSource), httpClient, ...process }
    return createAttempt(dependencies)(attemptRequest(delivery, changes), NO_SIGNALS)
  }
  const outcomes = async (): Promise<string[]> =>
    (await suite.attemptsOf(delivery.deliveryId)).map(
      ({ number, outcome }) => `${String(number)} ${String(outcome)}`,
    )

  it('posts again when this process was paused in mid-POST, counts each run, and records the outcome of the last', async () => {
    let repeated = 0
    const runs: number[] = []
    const paused = async (): Promise<PostResult> => {
      runs.push((await row()).runs)
      return PAUSED
    }
    const metrics = { ...createMetrics(), attemptRepeated: () => (repeated += 1) }
    expect(await attempt([paused, paused, () => CONFIRMED], { process: { metrics } })).to.include({
      state: 'completed',
      attempts: 1,
    })
    expect([posts, repeated]).to.deep.equal([3, 2])
    expect(runs).to.deep.equal([1, 2])
    expect(await outcomes()).to.deep.equal(['1 succeeded'])
    expect(await row()).to.include({ state: 'completed', runs: 0 })
  })

  it('has failed after five runs that this process was paused in', async () => {
    const paused = Array.from({ length: 6 }, () => () => PAUSED)
    const endpoints = createEndpoints({ maxLimit: 50 })
    expect(await attempt(paused, { process: { endpoints } })).to.include({
      state: 'waiting',
      attempts: 1,
      failureCode: 'worker_lost',
    })
    expect(posts).to.equal(5)
    expect(endpoints.hasAnswered(delivery.webhookId), 'what was not posted shows nothing').to.equal(false)
  })

  it("stays the user's retry after its worker was lost", async () => {
    const { organisationId, webhookId, deliveryId } = delivery
    await attempt([() => FAILED])
    const of = { organisationId, webhookId, ids: [deliveryId], states: ['waiting'] as const }
    await requestRetries(suite.database.dataSource, of)
    const lose = async (): Promise<PostResult> => {
      await endLease()
      await attempt([() => CONFIRMED], { changes: { number: 2 } })
      return FAILED
    }
    await attempt([lose], { changes: { number: 2 } })
    const triggers = (await suite.attemptsOf(deliveryId)).map(({ trigger, outcome }) => [trigger, outcome])
    expect(triggers).to.deep.equal([
      ['schedule', 'failed'],
      ['retry', 'succeeded'],
    ])
  })

  it('repeats no POST when another run confirmed the delivery during the pause', async () => {
    const confirm = async (): Promise<PostResult> => {
      await endLease()
      await attempt([() => PAUSED, () => CONFIRMED])
      return PAUSED
    }
    expect(await attempt([confirm])).to.include({ state: 'completed', attempts: 1 })
    expect(posts).to.equal(3)
  })

  it('waits for the run that owns the row, and returns its outcome, when its own failure is late', async () => {
    const answers = createDeferredAnswers()
    const taking: Promise<unknown>[] = []
    let superseded = 0
    const lose = async (): Promise<PostResult> => {
      await endLease()
      const confirm = async (): Promise<PostResult> => {
        await answers.answer(0, {} as never, {} as never)
        return CONFIRMED
      }
      taking.push(attempt([confirm]))
      await eventually(() => expect(posts).to.equal(2))
      return FAILED
    }
    const metrics = { ...createMetrics(), attemptSuperseded: () => (superseded += 1) }
    const outcome = attempt([lose], { process: { metrics } })
    await eventually(() => expect(superseded).to.equal(1))
    answers.release()
    await Promise.all(taking)
    expect(await outcome).to.include({ state: 'completed', attempts: 1 })
    expect(await outcomes()).to.deep.equal(['1 succeeded'])
    expect(posts).to.equal(2)
  })

  it('closes the incident that another run opened with a failure, when the answer was a confirmation after all', async () => {
    const lose = async (): Promise<PostResult> => {
      await endLease()
      await attempt([() => FAILED])
      expect(await row()).to.include({ state: 'waiting', attempts: 1 })
      return CONFIRMED
    }
    expect(await attempt([lose])).to.include({ state: 'completed' })
    expect(await outcomes()).to.deep.equal(['1 succeeded'])
    const open = await suite.database.dataSource.query<object[]>(
      'SELECT 1 FROM incident WHERE webhook_id = $1 AND closed_at IS NULL',
      [delivery.webhookId],
    )
    expect(open).to.have.length(0)
  })

  it('waits for the remaining time when the row is not due yet by the clock of the database', async () => {
    await set({ state: 'waiting', attempts: 1, dueInMs: 400 })
    const dueAtMs = (await row()).next_attempt_at!.getTime()
    let postedAtMs = 0
    const post = (): PostResult => {
      postedAtMs = Date.now()
      return CONFIRMED
    }
    // A process whose idea of the clock is three seconds ahead.
    const clock = { nowMs: () => Date.now() + 3_000 }
    expect(
      await attempt([post], { changes: { number: 2, dueAtMs, maxWaitMs: 1_000 }, process: { clock } }),
    ).to.include({ state: 'completed' })
    expect(postedAtMs - dueAtMs).to.be.at.least(-5)
  })

  it('returns a retry that is due much later to its workflow, which waits again', async () => {
    await set({ state: 'waiting', attempts: 5, dueInMs: 300_000 })
    const dueAtMs = (await row()).next_attempt_at!.getTime()
    for (const claimed of [Date.now() - 1, null]) {
      const outcome = await attempt([], { changes: { number: 6, dueAtMs: claimed, maxWaitMs: 1_000 } })
      expect(outcome).to.include({ state: 'waiting', attempts: 5, dueAtMs })
      expect(outcome).to.have.property('dueInMs').that.is.within(295_000, 300_000)
    }
    expect(posts).to.equal(0)
  })

  it('is due at once when it was requested during a first attempt that then failed', async () => {
    const { organisationId, webhookId, deliveryId } = delivery
    const of = { organisationId, webhookId, ids: [deliveryId], states: ['in_progress'] as const }
    const fail = async (): Promise<PostResult> => {
      expect(await requestRetries(suite.database.dataSource, of)).to.have.length(1)
      return FAILED
    }
    const outcome = await attempt([fail])
    expect(outcome).to.include({ state: 'waiting', attempts: 1 })
    expect(outcome).to.have.property('dueInMs').that.is.at.most(0)
    expect(await row()).to.include({ state: 'waiting', attempts: 1, retry_requested: true })
    expect(await attempt([() => CONFIRMED], { changes: { number: 2 } })).to.include({ state: 'completed' })
    const triggers = (await suite.attemptsOf(deliveryId)).map(({ trigger }) => trigger)
    expect(triggers).to.deep.equal(['schedule', 'retry'])
  })
})

describe('an outcome that the database refuses', () => {
  // In time for a POST on a busy machine: one that is timed out has another outcome.
  const suite = useAttempts(10_000)

  it('renews the lease of its row until it is recorded', async () => {
    const { delivery } = await suite.publish()
    const { deliveryId } = delivery
    let refused = 0
    let isRenewed = false
    const dependencies = {
      ...suite.dependencies,
      metrics: { ...createMetrics(), attemptNotRecorded: () => (refused += 1) },
      recordFirstSuccess: () =>
        isRenewed
          ? Promise.resolve(true)
          : Promise.reject(Object.assign(new Error('disk full'), { code: '53100' })),
    }
    const outcome = createAttempt(dependencies)(attemptRequest(delivery), NO_SIGNALS)
    await eventually(() => expect(refused).to.be.at.least(1))
    const { lease_until: before } = await suite.row(deliveryId)
    await eventually(async () => {
      const { lease_until: after } = await suite.row(deliveryId)
      expect(after!.getTime()).to.be.above(before!.getTime())
    })
    isRenewed = true
    expect(await outcome).to.include({ state: 'completed' })
    expect(suite.receiver.posts).to.have.length(1)
  })

  it('renews no row that another run owns, and none that is not in progress', async () => {
    const { dataSource } = suite.database
    const { deliveryId } = (await suite.publish()).delivery
    for (const state of ['pending', 'in_progress'] as const) {
      await setRow(dataSource, deliveryId, { state })
      const before = await suite.row(deliveryId)
      await renewLeases(dataSource, [{ deliveryId, owner: randomUUID() }], 999_000)
      expect(await suite.row(deliveryId)).to.deep.equal(before)
    }
  })
})
