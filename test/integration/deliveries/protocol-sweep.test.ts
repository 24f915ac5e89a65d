import { expect } from 'chai'
import {
  findFirstAttempts,
  findOverdue,
  findOwed,
  findOwedSignals,
  findOwedWorkflows,
} from '../../../src/db/queries/due-deliveries.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { setRow, type RowState } from '../../helpers/deliveries/set-row.ts'
import { idsOf, useDueRows, type OwnWebhook } from '../../helpers/deliveries/use-rows.ts'

describe('the deliveries without a workflow that the sweeper finds', () => {
  const suite = useDueRows()

  it('are those that are due, those first that are due longest, with what they need', async () => {
    const webhook = await suite.webhook()
    const [first, second] = (await suite.due(webhook, 2)) as [CommittedDelivery, CommittedDelivery]
    const [waiting] = await suite.due(webhook, 1, { to: { state: 'waiting', attempts: 1, dueInMs: -10 } })
    await suite.due(webhook, 1, { sinceMs: -60_000 })
    await suite.due(webhook, 1, { to: { state: 'pending', workflow: true } })
    await suite.due(webhook, 1, { to: { state: 'completed' } })
    const found = await suite.unstarted()
    expect(idsOf(found).slice(0, 3)).to.have.members(idsOf([first, second, waiting!]))
    expect(idsOf(found)).to.have.length(3)
    const { eventKey, url, organisationId, webhookId } = first
    const { sweep_at: sweepAt } = await suite.row(first)
    expect(found.find(({ deliveryId }) => deliveryId === first.deliveryId)).to.deep.equal({
      deliveryId: first.deliveryId,
      organisationId,
      webhookId,
      eventKey,
      url,
      attempts: 0,
      nextAttemptAt: null,
      dueInMs: 0,
      sweepAt,
    })
    expect(found.find(({ deliveryId }) => deliveryId === waiting!.deliveryId)).to.include({ attempts: 1 })
  })

  it('include those whose run was lost', async () => {
    const [one] = await suite.due(await suite.webhook(), 1, { to: { state: 'in_progress', leaseMs: -1 } })
    expect(idsOf(await suite.unstarted())).to.deep.equal(idsOf([one!]))
  })

  it('come in turn by webhook, of each as many as it has room', async () => {
    const webhooks = [await suite.webhook(), await suite.webhook(), await suite.webhook()]
    const [busy, quiet, full] = webhooks as [OwnWebhook, OwnWebhook, OwnWebhook]
    const many = await suite.due(busy, 6, { sinceMs: 600_000 })
    const few = await suite.due(quiet, 2, { sinceMs: 30_000 })
    await suite.due(full, 2, { sinceMs: 900_000 })
    const rooms = [
      { webhookId: full.webhookId, room: 0 },
      { webhookId: busy.webhookId, room: 4 },
    ]
    const expected = [many[0]!, few[0]!, many[1]!, few[1]!, many[2]!, many[3]!]
    expect(idsOf(await suite.unstarted({ rooms }))).to.deep.equal(idsOf(expected))
    expect(idsOf(await suite.unstarted({ rooms, limit: 3 }))).to.deep.equal(idsOf(expected.slice(0, 3)))
    const one = { rooms, defaultRoom: 1 }
    expect(idsOf(await suite.unstarted(one))).to.deep.equal(
      idsOf([many[0]!, few[0]!, many[1]!, many[2]!, many[3]!]),
    )
  })
})

describe('the deliveries with a workflow that the sweeper finds', () => {
  const suite = useDueRows()
  const overdue = (limit = 1_000) => findOverdue(suite.database.dataSource, limit)

  it('come in turn by webhook, those first that are due longest, with how late they are', async () => {
    const [busy, quiet] = [await suite.webhook(), await suite.webhook()]
    const to: RowState = { state: 'waiting', attempts: 2, dueInMs: -30_000, workflow: true }
    const many = await suite.due(busy, 3, { to, sinceMs: 600_000 })
    const few = await suite.due(quiet, 1, { to, sinceMs: 1_000 })
    await suite.due(quiet, 1, { to, sinceMs: -1_000 })
    await suite.due(quiet, 1)
    const found = await overdue()
    expect(idsOf(found)).to.deep.equal(idsOf([many[0]!, few[0]!, many[1]!, many[2]!]))
    expect(idsOf(await overdue(2))).to.deep.equal(idsOf([many[0]!, few[0]!]))
    expect(found[0]).to.include({ state: 'waiting', attempts: 2, retryRequested: false, pausedSince: null })
    expect(found[0]!.lateMs).to.be.within(30_000, 40_000)
  })

  it('count from the start of the workflow before the first attempt', async () => {
    const to: RowState = { state: 'pending', workflow: true }
    const [one] = await suite.due(await suite.webhook(), 1, { to })
    await suite.database.dataSource.query(
      `UPDATE delivery SET created_at = now() - interval '1 hour',
              workflow_started_at = now() - interval '20 seconds' WHERE id = $1`,
      [one!.deliveryId],
    )
    expect((await overdue())[0]!.lateMs).to.be.within(20_000, 30_000)
  })
})

describe('what a final delivery owes its workflow', () => {
  const suite = useDueRows()

  it('is a signal where it has one, and a workflow where it has none; nothing where it is settled', async () => {
    const { dataSource } = suite.database
    const webhook = await suite.webhook()
    const [signal] = await suite.due(webhook, 1, { to: { state: 'stopped', attempts: 1, workflow: true } })
    const [follow] = await suite.due(webhook, 1, { to: { state: 'completed', attempts: 1 } })
    await suite.database.dataSource.query(
      `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, status_code, outcome)
       VALUES ($1, $2, 1, 'schedule', '', '2026-01-02T03:04:05Z', 1, 204, 'succeeded')`,
      [follow!.deliveryId, webhook.webhookId],
    )
    await suite.deliveryIn({ state: 'completed' }, webhook)
    await suite.deliveryIn({ state: 'failed', workflow: true }, webhook)
    expect(idsOf(await findOwedSignals(dataSource, 10))).to.deep.equal(idsOf([signal!]))
    const workflows = await findOwedWorkflows(dataSource, 10)
    expect(idsOf(workflows)).to.deep.equal(idsOf([follow!]))
    expect(workflows[0]).to.deep.include({
      state: 'completed',
      attempts: 1,
      failureCode: null,
      statusCode: 204,
      attemptedAt: new Date('2026-01-02T03:04:05Z'),
      eventKey: follow!.eventKey,
      url: follow!.url,
    })
  })

  it('comes in the order in which it is due, up to a limit', async () => {
    const { dataSource } = suite.database
    const [one, other] = [await suite.webhook(), await suite.webhook()]
    const to: RowState = { state: 'completed' }
    const late = await suite.due(one, 2, { to, sinceMs: 20_000 })
    const later = await suite.due(other, 2, { to, sinceMs: 40_000 })
    const expected = idsOf([...later, ...late])
    expect(idsOf(await findOwedWorkflows(dataSource, 10))).to.deep.equal(expected)
    expect(idsOf(await findOwedWorkflows(dataSource, 3))).to.deep.equal(expected.slice(0, 3))
  })

  it('is counted over all organisations, with since when, also before it is due', async () => {
    const { dataSource } = suite.database
    expect(await findOwed(dataSource)).to.equal(null)
    const [first] = await suite.due(await suite.webhook(), 1, { to: { state: 'completed' } })
    await suite.due(await suite.webhook(), 2, { to: { state: 'stopped', attempts: 1 }, sinceMs: -60_000 })
    await suite.due(await suite.webhook(), 1, { to: { state: 'completed', workflow: true } })
    await dataSource.query(`UPDATE delivery SET completed_at = '2026-01-02T03:04:05Z' WHERE id = $1`, [
      first!.deliveryId,
    ])
    expect(await findOwed(dataSource)).to.deep.equal({ count: 3, since: new Date('2026-01-02T03:04:05Z') })
  })
})

describe('how the first attempts of deliveries stand', () => {
  const suite = useDueRows()

  it('is open until one is recorded or none is to be made', async () => {
    const { dataSource } = suite.database
    const one = await suite.publish()
    const states: RowState[] = [
      { state: 'pending' },
      { state: 'in_progress' },
      { state: 'waiting' },
      { state: 'completed' },
      { state: 'stopped' },
    ]
    const found: (string | undefined)[] = []
    for (const to of states) {
      await setRow(dataSource, one.deliveryId, to)
      found.push((await findFirstAttempts(dataSource, [one.deliveryId])).get(one.deliveryId))
    }
    expect(found).to.deep.equal(['open', 'open', 'other', 'completed', 'other'])
  })
})
