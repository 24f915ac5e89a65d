import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { claimAttempt } from '../../../src/db/queries/claims.ts'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import { markSignalled, takeToSignal } from '../../../src/db/queries/stops.ts'
import { takeForBackfill } from '../../../src/db/queries/leases.ts'
import { recordFailures, recordSuccesses, type AttemptRecord } from '../../../src/db/queries/outcomes.ts'
import { attemptRecord } from '../../helpers/deliveries/attempt-record.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'

describe('outcomes of an attempt whose row may have changed', () => {
  const suite = useInlineAttempts()
  const [stale, current] = [randomUUID(), randomUUID()]
  const change = (deliveryId: string, assignments: string) =>
    suite.database.dataSource.query(`UPDATE delivery SET ${assignments} WHERE id = $1`, [deliveryId])

  const record = (delivery: DeliveryToStart, changes: Partial<AttemptRecord> = {}): AttemptRecord =>
    attemptRecord(delivery, { owner: stale, underLease: false, ...changes })
  const success = async (delivery: DeliveryToStart, number = 1): Promise<boolean> =>
    (await recordSuccesses(suite.database.dataSource, [record(delivery, { number })], false))[0] !== null
  const failure = async (
    delivery: DeliveryToStart,
    changes: Partial<AttemptRecord> = {},
    dueInMs = 1_000,
  ) => {
    const failed = { failureCode: 'timeout', statusCode: null, error: 'No answer.', response: null } as const
    const after = { next: 'waiting', dueInMs, sweepAfterMs: 120_000, startAfterMs: 5_000 } as const
    const attempt = { ...record(delivery, { ...failed, ...changes }), ...after }
    const [recorded] = await recordFailures(suite.database.dataSource, [attempt])
    return recorded ?? null
  }
  const claim = (delivery: DeliveryToStart, owner: string, number = 1, onlyIfDue = false) =>
    claimAttempt(
      suite.database.dataSource,
      { ...delivery, number },
      { owner, leaseMs: 60_000, sweepAfterMs: 60_000, onlyIfDue, inline: false },
    )
  async function delivery(): Promise<DeliveryToStart> {
    const endpoint = await suite.endpoint()
    return endpoint.publishOne()
  }
  const outcomes = async ({ deliveryId }: DeliveryToStart): Promise<string[]> =>
    (await suite.attemptsOf(deliveryId)).map(({ number, outcome }) => `${String(number)} ${String(outcome)}`)

  it("record a failure of the run that owns the row, and the next attempt's due time by the database's clock", async () => {
    const one = await delivery()
    await claim(one, current)
    const before = Date.now()
    const recorded = await failure(one, { owner: current }, 700)
    expect(recorded).to.include({ state: 'waiting', retryRequested: false })
    expect(recorded!.nextAttemptAt!.getTime() - before).to.be.within(700, 1_700)
    expect(await outcomes(one)).to.deep.equal(['1 failed'])
  })

  it('reject a failure of a run that no longer owns the row', async () => {
    const one = await delivery()
    await claim(one, current)
    expect(await failure(one)).to.equal(null)
    await change(one.deliveryId, `state = 'pending', owner = '${current}'`)
    expect(await failure(one)).to.equal(null)
    expect(await failure(one, { underLease: true })).to.equal(null)
    await change(one.deliveryId, `state = 'waiting', owner = NULL`)
    expect(await failure(one)).to.equal(null)
    expect(await outcomes(one)).to.deep.equal([])
    expect(await suite.row(one.deliveryId)).to.include({ state: 'waiting', attempts: 0 })
  })

  it('record a failure under the lease of the commit, even when the webhook was disabled meanwhile', async () => {
    for (const state of [
      `state = 'pending', owner = '${stale}'`,
      `state = 'in_progress', owner = '${stale}'`,
      `state = 'stopped', owner = NULL`,
    ]) {
      const one = await delivery()
      await change(one.deliveryId, state)
      expect(await failure(one, { underLease: true }), state).not.to.equal(null)
      expect(await outcomes(one)).to.deep.equal(['1 failed'])
    }
  })

  it("record a success although another run owns the row, and reject that run's failure", async () => {
    const one = await delivery()
    await claim(one, current)
    expect(await success(one)).to.equal(true)
    expect(await failure(one, { owner: current })).to.equal(null)
    expect(await outcomes(one)).to.deep.equal(['1 succeeded'])
    expect(await suite.row(one.deliveryId)).to.include({
      state: 'completed',
      attempts: 1,
      owner: null,
      sweep_at: null,
    })
  })

  it('replace a failure that another run recorded under the same number by a success', async () => {
    const one = await delivery()
    await claim(one, current)
    await failure(one, { owner: current })
    expect(await success(one)).to.equal(true)
    const [attempt, ...others] = await suite.attemptsOf(one.deliveryId)
    expect(others).to.have.length(0)
    expect(attempt).to.include({ outcome: 'succeeded', failure_code: null, status_code: 204, error: null })
    expect(attempt).to.include({ response_body: 'ok', duration_ms: 12 })
    expect(await suite.row(one.deliveryId)).to.include({
      state: 'completed',
      attempts: 1,
      next_attempt_at: null,
    })
  })

  for (const [state, assignments] of [
    ['waiting', `state = 'waiting', attempts = 9, next_attempt_at = now() + interval '1 hour'`],
    ['failed', `state = 'failed', attempts = 10, completed_at = now()`],
    ['stopped', `state = 'stopped', attempts = 9, completed_at = now()`],
  ] as const) {
    it(`complete a delivery that is ${state} meanwhile, and signal its workflow once`, async () => {
      const one = await delivery()
      await change(one.deliveryId, `${assignments}, started_at = now()`)
      expect(await success(one, 9)).to.equal(true)
      const row = await suite.row(one.deliveryId)
      expect(row).to.include({ state: 'completed', next_attempt_at: null })
      expect(row.attempts).to.equal(state === 'failed' ? 10 : 9)
      const { dataSource } = suite.database
      expect(await takeForBackfill(dataSource, { leaseMs: 1, limit: 10 })).to.deep.equal([])
      expect(await takeToSignal(dataSource, 10)).to.deep.equal([{ deliveryId: one.deliveryId }])
      await markSignalled(dataSource, [one.deliveryId])
      expect(await suite.row(one.deliveryId)).to.include({ state: 'completed', sweep_at: null })
    })
  }

  it('complete a delivery in a later attempt, which then finds it completed', async () => {
    const one = await delivery()
    await change(
      one.deliveryId,
      `state = 'waiting', attempts = 1, next_attempt_at = now(), started_at = now()`,
    )
    await claim(one, current, 2)
    expect(await success(one)).to.equal(true)
    expect(await failure(one, { number: 2, owner: current })).to.equal(null)
    expect(await success(one, 2)).to.equal(false)
    expect(await outcomes(one)).to.deep.equal(['1 succeeded'])
    expect(await suite.row(one.deliveryId)).to.include({ state: 'completed', attempts: 1 })
  })

  it('record one success of two, also under different numbers', async () => {
    const one = await delivery()
    expect(await success(one)).to.equal(true)
    expect(await success(one)).to.equal(false)
    expect(await success(one, 2)).to.equal(false)
    expect(await outcomes(one)).to.deep.equal(['1 succeeded'])
  })

  it('record one of two runs of a delivery in one batch', async () => {
    const one = await delivery()
    const records = [record(one), record(one)]
    const recorded = await recordSuccesses(suite.database.dataSource, records, false)
    expect(recorded.filter((success) => success !== null)).to.have.length(1)
    expect(await outcomes(one)).to.deep.equal(['1 succeeded'])
  })

  it('ignore a success of another organisation', async () => {
    const one = await delivery()
    expect(await success({ ...one, organisationId: 'org_other' })).to.equal(false)
    expect(await suite.row(one.deliveryId)).to.include({ state: 'pending', attempts: 0 })
  })

  it("permit the claim of a retry when it is due by the database's clock, and not earlier", async () => {
    const one = await delivery()
    await change(
      one.deliveryId,
      `state = 'waiting', attempts = 1, next_attempt_at = now() + interval '300 ms'`,
    )
    expect(await claim(one, current, 2, true)).to.equal(null)
    await change(one.deliveryId, `next_attempt_at = now()`)
    expect(await claim(one, current, 2, true)).not.to.equal(null)
  })

  it('label a first attempt as scheduled, even when a user requested it before it started', async () => {
    const one = await delivery()
    await change(one.deliveryId, `retry_requested = true`)
    expect(await claim(one, current)).to.include({ retryRequested: false })
    expect(await suite.row(one.deliveryId)).to.include({ retry_requested: false })
    const two = await delivery()
    await change(
      two.deliveryId,
      `state = 'waiting', attempts = 1, next_attempt_at = now(), retry_requested = true`,
    )
    expect(await claim(two, current, 2)).to.include({ retryRequested: true })
  })
})
