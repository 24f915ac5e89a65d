import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { findOwedSignals, findOwedWorkflows } from '../../../src/db/queries/due-deliveries.ts'
import { recordAttempts } from '../../../src/deliveries/attempt/record-under-lock.ts'
import { requestRetries } from '../../../src/deliveries/protocol/change-deliveries.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { recordSuccesses } from '../../../src/deliveries/protocol/record-attempts.ts'
import { sweepLater } from '../../../src/deliveries/protocol/sweep.ts'
import { holdClock } from '../../helpers/database/database.ts'
import { attemptRecord, useRows } from '../../helpers/deliveries/use-rows.ts'
import { eventually } from '../../helpers/eventually.ts'
import { setRow, type RowState } from '../../helpers/deliveries/set-row.ts'

describe('outcomes of an attempt whose row may have changed', () => {
  const suite = useRows()
  const [stale, current] = [randomUUID(), randomUUID()]

  const outcomes = async (delivery: CommittedDelivery): Promise<string[]> =>
    (await suite.attemptsOf(delivery)).map(({ number, outcome }) => `${String(number)} ${String(outcome)}`)
  const incidents = (webhookId: string) =>
    suite.database.dataSource.query<object[]>('SELECT 1 FROM incident WHERE webhook_id = $1', [webhookId])
  /** Records a failed first attempt and what it changes of the incident of its webhook. */
  const record = (delivery: CommittedDelivery, owner: string) =>
    suite.database.dataSource.transaction(async (manager) => {
      const { organisationId, webhookId } = delivery
      const failed = { failureCode: 'http_status', statusCode: 503, error: 'no' } as const
      const attempt = {
        ...attemptRecord(delivery, { owner, ...failed }),
        next: 'waiting',
        dueInMs: 1_000,
      } as const
      return (await recordAttempts(manager, { organisationId, webhookId }, [attempt], null))[0]!
    })

  it("record a failure of the run that owns the row, and the next attempt's due time by the database's clock", async () => {
    const one = await suite.deliveryIn({ state: 'in_progress', owner: current })
    const before = Date.now()
    const recorded = await suite.fail(one, { owner: current, dueInMs: 700 })
    expect(recorded).to.include({ state: 'waiting' })
    expect(recorded!.dueAt!.getTime() - before).to.be.within(700, 701 + Date.now() - before)
    const row = await suite.row(one)
    expect(row).to.include({ state: 'waiting', attempts: 1, runs: 0, owner: null, lease_until: null })
    expect(row.next_attempt_at).to.deep.equal(recorded!.dueAt)
    expect(await outcomes(one)).to.deep.equal(['1 failed'])
  })

  it('sweep a retry with a workflow later, after a time-out even more, than one whose workflow is still to be started', async () => {
    for (const [workflow, failureCode, afterMs] of [
      [true, 'http_status', 15_000],
      [true, 'connect_timeout', 60_000],
      [false, 'timeout', 5_000],
    ] as const) {
      const one = await suite.deliveryIn({ state: 'in_progress', owner: current, workflow })
      await suite.fail(one, { owner: current, failureCode })
      const row = await suite.row(one)
      expect(row.sweep_at!.getTime() - row.next_attempt_at!.getTime()).to.equal(afterMs)
    }
  })

  for (const [what, to] of [
    ['in progress by another run', { state: 'in_progress', owner: current }],
    ['pending again', { state: 'pending' }],
    ['waiting', { state: 'waiting', attempts: 1 }],
    ['stopped', { state: 'stopped' }],
    ['completed', { state: 'completed' }],
  ] as [string, RowState][]) {
    it(`reject a failure of a run whose row is ${what}`, async () => {
      const one = await suite.deliveryIn(to)
      const before = await suite.row(one)
      expect(await suite.fail(one, { owner: stale })).to.equal(null)
      expect(await suite.row(one)).to.deep.equal(before)
      expect(await outcomes(one)).to.deep.equal([])
    })
  }

  it('reject a failure under the number of another attempt', async () => {
    const one = await suite.deliveryIn({ state: 'in_progress', owner: current, attempts: 1 })
    for (const number of [1, 3]) expect(await suite.fail(one, { owner: current, number })).to.equal(null)
    expect(await suite.fail(one, { owner: current, number: 2 })).to.include({ state: 'waiting' })
  })

  it("record a success although another run owns the row, and reject that run's failure", async () => {
    for (const succeed of [suite.succeed, suite.succeedFirst]) {
      const one = await suite.deliveryIn({ state: 'in_progress', owner: current })
      expect(await succeed(one, { owner: stale })).to.be.ok
      expect(await suite.fail(one, { owner: current })).to.equal(null)
      expect(await outcomes(one)).to.deep.equal(['1 succeeded'])
      const row = await suite.row(one)
      expect(row).to.include({ state: 'completed', attempts: 1, runs: 0, owner: null, sweep_at: null })
    }
  })

  it('replace a failure that another run recorded under the same number by a success', async () => {
    const one = await suite.deliveryIn({ state: 'in_progress', owner: current })
    await suite.fail(one, { owner: current })
    expect(await suite.succeedFirst(one)).to.equal(false)
    expect(await suite.succeed(one)).to.deep.equal({ isCounted: true, place: 1 })
    const [attempt, ...others] = await suite.attemptsOf(one)
    expect(others).to.have.length(0)
    expect(attempt).to.include({ outcome: 'succeeded', failure_code: null, status_code: 204, error: null })
    expect(attempt).to.include({ response_body: 'ok', duration_ms: 12 })
    expect(await suite.row(one)).to.include({ state: 'completed', attempts: 1, next_attempt_at: null })
  })

  for (const [state, to] of [
    ['waiting', { state: 'waiting', attempts: 9, workflow: true }],
    ['failed', { state: 'failed', attempts: 10, workflow: true }],
    ['stopped', { state: 'stopped', attempts: 9, workflow: true }],
  ] as [string, RowState][]) {
    it(`complete a delivery that is ${state} meanwhile, and owe its workflow one signal`, async () => {
      const { dataSource } = suite.database
      const one = await suite.deliveryIn(to)
      expect(await suite.succeed(one, { number: 9 })).not.to.equal(null)
      const row = await suite.row(one)
      expect(row).to.include({ state: 'completed', next_attempt_at: null, stop_reason: null })
      expect(row.attempts).to.equal(state === 'failed' ? 10 : 9)
      const isThis = ({ deliveryId }: { deliveryId: string }) => deliveryId === one.deliveryId
      expect((await findOwedWorkflows(dataSource, 10)).filter(isThis)).to.deep.equal([])
      const owed = await eventually(async () => {
        const found = (await findOwedSignals(dataSource, 10)).filter(isThis)
        expect(found).to.have.length(1)
        return found
      })
      await sweepLater(dataSource, [{ ...owed[0]!, inMs: null, pausedSince: null }])
      expect(await suite.row(one)).to.include({ state: 'completed', sweep_at: null })
    })
  }

  it('owe no signal to the workflow whose own attempt is recorded', async () => {
    const one = await suite.publish()
    const claim = await suite.claim(one, { isWorkflow: true })
    await suite.succeed(one, { owner: claim!.owner }, 1)
    expect(await suite.row(one)).to.include({ state: 'completed', sweep_at: null })
  })

  it('owe a workflow that follows to what was attempted without one, where that is set, also where it was stopped', async () => {
    const webhook = await suite.webhook()
    const [succeeded, stopped, waiting] = await Promise.all(
      [1, 2, 3].map(() => suite.deliveryIn({ state: 'in_progress', owner: current }, webhook)),
    )
    await suite.succeed(succeeded!, {}, 2_000)
    await suite.fail(waiting!, { owner: current }, 2_000)
    await suite.change(webhook.webhookId, 'enabled = false')
    await suite.fail(stopped!, { owner: current }, 2_000)
    for (const delivery of [succeeded!, stopped!]) {
      const row = await suite.row(delivery)
      expect(row.sweep_at!.getTime() - row.completed_at!.getTime()).to.equal(2_000)
    }
    expect(await suite.row(waiting!)).to.include({ state: 'waiting', workflow_started_at: null })
    const other = await suite.deliveryIn({ state: 'in_progress' })
    await suite.succeed(other, {}, null)
    expect(await suite.row(other)).to.include({ sweep_at: null })
  })

  it('record one success of two, also under different numbers, and in one batch', async () => {
    const one = await suite.publish()
    expect(await suite.succeed(one)).not.to.equal(null)
    for (const number of [1, 2]) expect(await suite.succeed(one, { number })).to.equal(null)
    const two = await suite.publish()
    const records = [1, 2].map(() => attemptRecord(two, { owner: stale }))
    const recorded = await recordSuccesses(suite.database.dataSource, records, null)
    expect(recorded.filter((success) => success !== null)).to.have.length(1)
    for (const delivery of [one, two]) expect(await outcomes(delivery)).to.deep.equal(['1 succeeded'])
  })

  it('ignore a success and a failure of another organisation', async () => {
    const one = await suite.deliveryIn({ state: 'in_progress', owner: current })
    const foreign = { ...one, organisationId: 'org_other' }
    expect(await suite.succeed(foreign)).to.equal(null)
    expect(await suite.succeedFirst(foreign)).to.equal(false)
    expect(await suite.fail(foreign, { owner: current })).to.equal(null)
    expect(await suite.row(one)).to.include({ state: 'in_progress', attempts: 0 })
  })

  it('stops a test event that failed, and changes no incident', async () => {
    const one = await suite.deliveryIn({ state: 'in_progress', owner: current })
    await suite.database.dataSource.query('UPDATE delivery SET is_test = true WHERE id = $1', [
      one.deliveryId,
    ])
    const { result } = await record(one, current)
    expect(result).to.include({ state: 'stopped', changesIncident: false })
    expect(await suite.row(one)).to.include({ stop_reason: 'test_failed' })
    expect(await incidents(one.webhookId)).to.have.length(0)
  })

  it("follow a user's request during the attempt at once, also after the last attempt of the schedule", async () => {
    const { dataSource } = suite.database
    const webhook = await suite.webhook()
    const requested = await suite.deliveryIn({ state: 'in_progress', owner: current, attempts: 9 }, webhook)
    const other = await suite.deliveryIn({ state: 'in_progress', owner: current, attempts: 9 }, webhook)
    await requestRetries(dataSource, { ...webhook, ids: [requested.deliveryId], states: ['in_progress'] })
    const last = { owner: current, number: 10, next: 'failed', dueInMs: null } as const
    const recorded = await suite.fail(requested, last)
    expect(recorded).to.include({ state: 'waiting', dueInMs: 0 })
    expect(await suite.row(requested)).to.include({ state: 'waiting', attempts: 10, retry_requested: true })
    expect(await suite.fail(other, last)).to.include({ state: 'failed', dueAt: null })
    expect(await suite.row(other)).to.include({ state: 'failed', attempts: 10, sweep_at: null })
  })

  it("drop a user's request where the webhook was switched off during the attempt", async () => {
    const one = await suite.deliveryIn({ state: 'in_progress', owner: current })
    const of = { organisationId: one.organisationId, webhookId: one.webhookId }
    await requestRetries(suite.database.dataSource, { ...of, ids: [one.deliveryId], states: ['in_progress'] })
    await suite.change(one.webhookId, 'enabled = false')
    expect(await suite.fail(one, { owner: current })).to.include({ state: 'stopped' })
    expect(await suite.row(one)).to.include({ retry_requested: false })
  })

  it('leave the first success of a webhook that has nothing else unresolved to the lock, while its incident is open', async () => {
    const webhook = await suite.webhook()
    const [failing, first, second] = await Promise.all([1, 2, 3].map(() => suite.publish(webhook)))
    await setRow(suite.database.dataSource, failing!.deliveryId, { state: 'in_progress', owner: current })
    await record(failing!, current)
    expect(await suite.succeedFirst(first!)).to.equal(true)
    await setRow(suite.database.dataSource, failing!.deliveryId, { state: 'stopped', attempts: 1 })
    expect(await suite.succeedFirst(second!)).to.equal(false)
    expect(await suite.succeed(second!)).to.include({ isCounted: true })
  })
})

describe('a failure that is recorded', () => {
  const suite = useRows()
  const NOW = new Date('2026-01-02T03:04:05Z')
  before(() => holdClock(suite.database.dataSource, NOW))

  it('has its next attempt due in whole milliseconds, rounded up, and reports the same instant and the rest', async () => {
    const owner = randomUUID()
    // The clock shows whole milliseconds too, rounded down: one more is never early.
    for (const [dueInMs, expected] of [
      [1_000, 1_001],
      [1_000.25, 1_002],
    ] as const) {
      const one = await suite.deliveryIn({ state: 'in_progress', owner })
      const dueAt = new Date(NOW.getTime() + expected)
      expect(await suite.fail(one, { owner, dueInMs })).to.deep.include({ dueAt, dueInMs: expected })
      expect(await suite.row(one)).to.deep.include({ next_attempt_at: dueAt })
    }
  })
})
