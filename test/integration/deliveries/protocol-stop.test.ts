import { expect } from 'chai'
import {
  discard,
  requestRetries,
  resumeUnattempted,
  stopUnwanted,
} from '../../../src/deliveries/protocol/change-deliveries.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { findOwedSignals, findOwedWorkflows } from '../../../src/db/queries/due-deliveries.ts'
import { DELIVERY_STATES, type DeliveryState } from '../../../src/domain/delivery-state.ts'
import { LONG_STATEMENT_TIMEOUT_MS } from '../../../src/db/connection/session-limits.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { eventually } from '../../helpers/eventually.ts'
import type { RowState } from '../../helpers/deliveries/set-row.ts'
import { useRows, type OwnWebhook } from '../../helpers/deliveries/use-rows.ts'

const OFF = [
  ['is switched off', 'enabled = false', 'webhook_disabled'],
  ['is deleted', 'deleted_at = now(), secret = NULL', 'webhook_deleted'],
  ['drops the key', `subscribed_event_keys = '{invoice:paid}'`, 'unsubscribed'],
] as const

const EVERYTHING: readonly RowState[] = [
  { state: 'pending' },
  { state: 'in_progress', attempts: 1 },
  { state: 'waiting' },
  { state: 'completed' },
  { state: 'failed' },
  { state: 'stopped', attempts: 1 },
]

/** A database for the `describe` it is called in, and the statements that members of an organisation cause. */
function useCommands() {
  const suite = useRows()
  const stop = async (webhook: OwnWebhook) => (await stopUnwanted(suite.database.dataSource, webhook)).stopped
  const resume = (webhook: OwnWebhook) => resumeUnattempted(suite.database.dataSource, webhook)
  const retry = (
    { deliveryId, ...of }: CommittedDelivery,
    states: readonly DeliveryState[] = DELIVERY_STATES,
  ) => requestRetries(suite.database.dataSource, { ...of, ids: [deliveryId], states })
  /** One delivery of the webhook in each of `states`, in that order. */
  async function deliveriesIn(
    states: readonly RowState[],
    webhook: OwnWebhook,
  ): Promise<CommittedDelivery[]> {
    const deliveries: CommittedDelivery[] = []
    for (const to of states) deliveries.push(await suite.deliveryIn(to, webhook))
    return deliveries
  }
  const statesOf = async (deliveries: readonly CommittedDelivery[]): Promise<string[]> =>
    (await Promise.all(deliveries.map(suite.row))).map(({ state }) => state)
  /** Expects that its workflow is owed a signal, that a workflow is owed to it, or neither. */
  async function expectOwed(
    { deliveryId }: CommittedDelivery,
    owed: 'signal' | 'workflow' | null,
  ): Promise<void> {
    const { dataSource } = suite.database
    const isThis = (row: { deliveryId: string }): boolean => row.deliveryId === deliveryId
    // It is due from the next millisecond on.
    await eventually(async () => {
      const signals = (await findOwedSignals(dataSource, 1_000)).filter(isThis)
      const workflows = (await findOwedWorkflows(dataSource, 1_000)).filter(isThis)
      expect([signals.length, workflows.length]).to.deep.equal([
        owed === 'signal' ? 1 : 0,
        owed === 'workflow' ? 1 : 0,
      ])
    })
  }
  return { ...suite, stop, resume, retry, deliveriesIn, statesOf, expectOwed }
}

describe('the stop of what a webhook does not take', () => {
  const suite = useCommands()

  for (const [what, change, reason] of OFF)
    it(`stops what is pending, waits, or was lost in its attempt, when the webhook ${what}, and nothing else`, async () => {
      const webhook = await suite.webhook()
      const deliveries = await suite.deliveriesIn(
        [...EVERYTHING, { state: 'in_progress', runs: 3, attempts: 1, leaseMs: -1 }],
        webhook,
      )
      const [pending, underWay, waiting, , , , lost] = deliveries
      const before = await suite.row(underWay!)
      await suite.change(webhook.webhookId, change)
      expect(await suite.stop(webhook)).to.equal(3)
      expect(await suite.statesOf(deliveries)).to.deep.equal([
        'stopped',
        'in_progress',
        'stopped',
        'completed',
        'failed',
        'stopped',
        'stopped',
      ])
      for (const [delivery, runs] of [
        [pending!, 0],
        [waiting!, 0],
        // Its POSTs may have been sent: they stay counted.
        [lost!, 3],
      ] as const)
        expect(await suite.row(delivery)).to.include({
          stop_reason: reason,
          next_attempt_at: null,
          owner: null,
          lease_until: null,
          runs,
          retry_requested: false,
        })
      expect(await suite.row(underWay!)).to.deep.equal(before)
      expect(await suite.stop(webhook)).to.equal(0)
    })

  it('stops nothing of a webhook that takes everything, and nothing of another webhook', async () => {
    const [live, off] = [await suite.webhook(), await suite.webhook()]
    await suite.change(off.webhookId, 'enabled = false')
    const [one, other] = [await suite.publish(live), await suite.deliveryIn({ state: 'waiting' }, live)]
    expect(await suite.stop(live)).to.equal(0)
    expect(await suite.stop(off)).to.equal(0)
    expect(await suite.stop({ ...live, organisationId: off.organisationId })).to.equal(0)
    expect(await suite.statesOf([one, other])).to.deep.equal(['pending', 'waiting'])
  })

  for (const [to, owed] of [
    [{ state: 'pending', workflow: false }, null],
    [{ state: 'pending', workflow: true }, 'signal'],
    [{ state: 'in_progress', leaseMs: -1, workflow: false }, null],
    [{ state: 'waiting', workflow: true }, 'signal'],
    [{ state: 'waiting', workflow: false }, 'workflow'],
  ] as [RowState, 'signal' | 'workflow' | null][])
    it(`owes ${owed === null ? 'nothing' : `a ${owed}`} to what was ${to.state} ${to.workflow === true ? 'with' : 'without'} a workflow`, async () => {
      const one = await suite.deliveryIn(to)
      await suite.change(one.webhookId, 'enabled = false')
      await suite.stop(one)
      await suite.expectOwed(one, owed)
    })

  it('is one statement for 50,000 that wait', async () => {
    const webhook = await suite.webhook()
    const { dataSource } = suite.database
    await writeBacklog(dataSource, { ...webhook, state: 'waiting', count: 50_000 })
    await suite.change(webhook.webhookId, 'enabled = false')
    expect(await suite.stop(webhook)).to.equal(50_000)
  })

  it('may take longer than other statements: there may be hundreds of thousands', async () => {
    const webhook = await suite.webhook()
    for (const change of [stopUnwanted, resumeUnattempted])
      await suite.database.dataSource.transaction(async (manager) => {
        await change(manager, webhook)
        const [limit] = await manager.query<{ ms: number }[]>(
          `SELECT setting::int AS ms FROM pg_settings WHERE name = 'statement_timeout'`,
        )
        expect(limit).to.deep.equal({ ms: LONG_STATEMENT_TIMEOUT_MS })
      })
  })
})

describe('the resumption of what a webhook takes again', () => {
  const suite = useCommands()

  for (const [what, change, reason] of OFF.filter(([, , reason]) => reason !== 'webhook_deleted'))
    it(`makes what was stopped before any attempt pending again, without a workflow, after the webhook ${what} for a while`, async () => {
      const webhook = await suite.webhook()
      const workflows = [true, false]
      const deliveries = await suite.deliveriesIn(
        workflows.map((workflow) => ({ state: 'pending', workflow })),
        webhook,
      )
      await suite.change(webhook.webhookId, change)
      await suite.stop(webhook)
      expect(await suite.resume(webhook)).to.equal(0)
      for (const delivery of deliveries)
        expect(await suite.row(delivery)).to.include({ state: 'stopped', stop_reason: reason })
      await suite.change(webhook.webhookId, `enabled = true, subscribed_event_keys = '{*}'`)
      expect(await suite.resume(webhook)).to.equal(2)
      for (const delivery of deliveries) {
        const row = await suite.row(delivery)
        expect(row).to.include({ state: 'pending', stop_reason: null, completed_at: null, runs: 0 })
        expect(row.workflow_started_at).to.equal(null)
        expect(row.sweep_at!.getTime()).to.be.at.most(Date.now())
        expect(await suite.claim(delivery)).to.include({ runs: 1 })
      }
    })

  it('leaves stopped what was attempted, discarded, sent as a test, or is still not taken', async () => {
    const { dataSource } = suite.database
    const webhook = await suite.webhook()
    const deliveries = await suite.deliveriesIn(
      [
        { state: 'stopped', attempts: 1 },
        { state: 'stopped', attempts: 1, reason: 'discarded' },
        { state: 'stopped', attempts: 0 },
        { state: 'stopped', attempts: 0, reason: 'webhook_deleted' },
      ],
      webhook,
    )
    await dataSource.query('UPDATE delivery SET is_test = true WHERE id = $1', [deliveries[2]!.deliveryId])
    const dropped = await suite.publish(webhook, { eventKey: 'invoice:paid' })
    await suite.change(webhook.webhookId, 'enabled = false')
    await suite.stop(webhook)
    await suite.change(webhook.webhookId, `enabled = true, subscribed_event_keys = '{customer:created}'`)
    expect(await suite.resume(webhook)).to.equal(0)
    expect(new Set(await suite.statesOf([...deliveries, dropped]))).to.deep.equal(new Set(['stopped']))
  })
})

describe('the request of a retry', () => {
  const suite = useCommands()

  for (const to of [
    { state: 'waiting', attempts: 3, workflow: true },
    { state: 'failed', attempts: 10, workflow: true },
    { state: 'stopped', attempts: 4, workflow: true },
    { state: 'stopped', attempts: 4, workflow: true, reason: 'discarded' },
  ] as const)
    it(`has a delivery that is ${to.state} (${'reason' in to ? to.reason : to.attempts}) wait for its next attempt, due now`, async () => {
      const one = await suite.deliveryIn(to)
      expect(await suite.retry(one)).to.deep.equal([
        {
          deliveryId: one.deliveryId,
          attempts: to.attempts,
          eventKey: one.eventKey,
          url: one.url,
          state: 'waiting',
        },
      ])
      const row = await suite.row(one)
      expect(row).to.include({
        state: 'waiting',
        attempts: to.attempts,
        retry_requested: true,
        stop_reason: null,
      })
      expect(row.completed_at).to.equal(null)
      expect(row.next_attempt_at!.getTime()).to.be.at.most(Date.now())
      expect(row.sweep_at!.getTime() - row.next_attempt_at!.getTime()).to.equal(5_000)
      expect(await suite.claim(one, { number: to.attempts + 1 })).to.include({ isRequested: true })
    })

  it('passes over states that are not asked for, completed deliveries, test events, and what was stopped before any attempt', async () => {
    const webhook = await suite.webhook()
    const deliveries = await suite.deliveriesIn(
      [{ state: 'completed' }, { state: 'stopped', attempts: 0 }, { state: 'pending' }, { state: 'waiting' }],
      webhook,
    )
    const [completed, stopped, test, waiting] = deliveries as [
      CommittedDelivery,
      CommittedDelivery,
      CommittedDelivery,
      CommittedDelivery,
    ]
    await suite.database.dataSource.query('UPDATE delivery SET is_test = true WHERE id = $1', [
      test.deliveryId,
    ])
    const before = await Promise.all(deliveries.map(suite.row))
    for (const delivery of [completed, stopped, test]) expect(await suite.retry(delivery)).to.deep.equal([])
    expect(await suite.retry(waiting, ['failed', 'stopped'])).to.deep.equal([])
    expect(await suite.retry({ ...waiting, organisationId: 'org_other' })).to.deep.equal([])
    expect(await suite.retry({ ...waiting, webhookId: (await suite.webhook()).webhookId })).to.deep.equal([])
    expect(await Promise.all(deliveries.map(suite.row))).to.deep.equal(before)
  })

  for (const [what, change] of OFF)
    it(`passes over deliveries of a webhook that ${what}`, async () => {
      const one = await suite.deliveryIn({ state: 'failed' })
      await suite.change(one.webhookId, change)
      expect(await suite.retry(one)).to.deep.equal([])
      expect(await suite.row(one)).to.include({ state: 'failed' })
    })
})

describe('the discarding of deliveries', () => {
  const suite = useCommands()

  it('stops those that wait or have failed, for good, and no others', async () => {
    const webhook = await suite.webhook()
    const deliveries = await suite.deliveriesIn(EVERYTHING, webhook)
    const ids = deliveries.map(({ deliveryId }) => deliveryId)
    const discarded = await discard(suite.database.dataSource, { ...webhook, ids })
    expect(discarded).to.have.members([ids[2], ids[4]])
    expect(await suite.statesOf(deliveries)).to.deep.equal([
      'pending',
      'in_progress',
      'stopped',
      'completed',
      'stopped',
      'stopped',
    ])
    for (const delivery of [deliveries[2]!, deliveries[4]!])
      expect(await suite.row(delivery)).to.include({ stop_reason: 'discarded', next_attempt_at: null })
    expect(await suite.resume(webhook)).to.equal(0)
  })

  for (const [to, owed] of [
    [{ state: 'waiting', workflow: true }, 'signal'],
    [{ state: 'waiting', workflow: false }, 'workflow'],
    [{ state: 'failed', workflow: true }, null],
  ] as [RowState, 'signal' | 'workflow' | null][])
    it(`owes ${owed === null ? 'nothing' : `a ${owed}`} to what was ${to.state} ${to.workflow === true ? 'with' : 'without'} a workflow`, async () => {
      const one = await suite.deliveryIn(to)
      await discard(suite.database.dataSource, { ...one, ids: [one.deliveryId] })
      await suite.expectOwed(one, owed)
    })
})
