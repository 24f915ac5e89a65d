import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { claimAttempt } from '../../../src/db/queries/attempts.ts'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import { markTold, takeToTell } from '../../../src/db/queries/interventions.ts'
import { takeForBackfill } from '../../../src/db/queries/keeping.ts'
import { recordFailure, recordSuccess, type AttemptRecord } from '../../../src/db/queries/outcomes.ts'
import { attemptRecord } from '../../helpers/deliveries/attempt-record.ts'
import { useFirstAttempts } from '../../helpers/deliveries/use-first-attempts.ts'

describe('outcomes of an attempt whose row may have moved on', () => {
  const suite = useFirstAttempts()
  const [stale, current] = [randomUUID(), randomUUID()]
  const change = (deliveryId: string, assignments: string) =>
    suite.database.dataSource.query(`UPDATE delivery SET ${assignments} WHERE id = $1`, [deliveryId])

  const record = (delivery: DeliveryToStart, changes: Partial<AttemptRecord> = {}): AttemptRecord =>
    attemptRecord(delivery, { owner: stale, underLease: false, ...changes })
  const success = (delivery: DeliveryToStart, number = 1): Promise<boolean> =>
    recordSuccess(suite.database.dataSource, record(delivery, { number }))
  const failure = (delivery: DeliveryToStart, changes: Partial<AttemptRecord> = {}, dueInMs = 1_000) =>
    recordFailure(
      suite.database.dataSource,
      record(delivery, {
        failureCode: 'timeout',
        statusCode: null,
        error: 'No answer.',
        response: null,
        ...changes,
      }),
      { stopReason: null, state: 'waiting', dueInMs, sweepAfterMs: 120_000, startAfterMs: 5_000 },
    )
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

  it('record a failure of the run that owns the row, and the instant of the next attempt on the clock of the database', async () => {
    const one = await delivery()
    await claim(one, current)
    const before = Date.now()
    const recorded = await failure(one, { owner: current }, 700)
    expect(recorded).to.include({ state: 'waiting', asked: false })
    expect(recorded!.nextAttemptAt!.getTime() - before).to.be.within(700, 1_700)
    expect(await outcomes(one)).to.deep.equal(['1 failed'])
  })

  it('refuse a failure of a run that has lost the row, whether another one is under way or the row waits to be taken', async () => {
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

  it('record the failure of a process that has held the row since its commit, also when it was switched off meanwhile', async () => {
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

  it('record a success under another run that has the row now, whose failure is then refused', async () => {
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

  it('make a success of the failure that another run recorded under the same number', async () => {
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
    it(`complete a delivery that is ${state} by now, and have its workflow told of it once`, async () => {
      const one = await delivery()
      await change(one.deliveryId, `${assignments}, started_at = now()`)
      expect(await success(one, 9)).to.equal(true)
      const row = await suite.row(one.deliveryId)
      expect(row).to.include({ state: 'completed', next_attempt_at: null })
      expect(row.attempts).to.equal(state === 'failed' ? 10 : 9)
      const { dataSource } = suite.database
      expect(await takeForBackfill(dataSource, { leaseMs: 1, limit: 10 })).to.deep.equal([])
      expect(await takeToTell(dataSource, 10)).to.deep.equal([{ deliveryId: one.deliveryId }])
      await markTold(dataSource, [one.deliveryId])
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

  it('keep a success of another organisation away from the row', async () => {
    const one = await delivery()
    expect(await success({ ...one, organisationId: 'org_other' })).to.equal(false)
    expect(await suite.row(one.deliveryId)).to.include({ state: 'pending', attempts: 0 })
  })

  it('let a retry be claimed when it is due by the clock of the database, and not before', async () => {
    const one = await delivery()
    await change(
      one.deliveryId,
      `state = 'waiting', attempts = 1, next_attempt_at = now() + interval '300 ms'`,
    )
    expect(await claim(one, current, 2, true)).to.equal(null)
    await change(one.deliveryId, `next_attempt_at = now()`)
    expect(await claim(one, current, 2, true)).not.to.equal(null)
  })

  it('label a first attempt as one of the schedule, also when a person asked for it before it began', async () => {
    const one = await delivery()
    await change(one.deliveryId, `retry_requested = true`)
    expect(await claim(one, current)).to.include({ asked: false })
    expect(await suite.row(one.deliveryId)).to.include({ retry_requested: false })
    const two = await delivery()
    await change(
      two.deliveryId,
      `state = 'waiting', attempts = 1, next_attempt_at = now(), retry_requested = true`,
    )
    expect(await claim(two, current, 2)).to.include({ asked: true })
  })
})
