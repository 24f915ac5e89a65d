import { expect } from 'chai'
import { findOverdue, findOwedSignals, findOwedWorkflows } from '../../../src/db/queries/due-deliveries.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import {
  markWorkflowsStarted,
  sweepDeliveries,
  sweepLater,
  type SweptRow,
} from '../../../src/deliveries/protocol/sweep.ts'
import type { RowState } from '../../helpers/deliveries/set-row.ts'
import { idsOf, useDueRows } from '../../helpers/deliveries/use-rows.ts'

describe('a row that the sweeper takes', () => {
  const suite = useDueRows()
  const later = (rows: readonly SweptRow[], inMs: number | null, pausedSince: Date | null = null) =>
    sweepLater(
      suite.database.dataSource,
      rows.map((row) => ({ ...row, inMs, pausedSince })),
    )
  const read = async (): Promise<SweptRow[]> =>
    (await suite.unstarted()).map(({ deliveryId, sweepAt }) => ({ deliveryId, sweepAt }))

  it('is read again when that is due, by any process', async () => {
    const [one] = await suite.due(await suite.webhook(), 1)
    const [taken] = await later(await read(), 30_000.4)
    const { sweep_at: sweepAt } = await suite.row(one!)
    expect(taken).to.deep.equal({ deliveryId: one!.deliveryId, sweepAt })
    expect(sweepAt!.getTime() - Date.now()).to.be.within(25_000, 30_000)
    expect(await suite.unstarted()).to.deep.equal([])
    expect(await later([taken!], -1)).to.have.length(1)
    expect(idsOf(await suite.unstarted())).to.deep.equal(idsOf([one!]))
  })

  it('is left alone where it went on since it was read', async () => {
    const [claimed, untouched] = await suite.due(await suite.webhook(), 2)
    const rows = await read()
    await suite.claim(claimed!)
    const before = await suite.row(claimed!)
    expect(idsOf(await later(rows, 30_000))).to.deep.equal(idsOf([untouched!]))
    expect(await suite.row(claimed!)).to.deep.equal(before)
  })

  it('is left alone while it is locked: it just goes on', async () => {
    const { dataSource } = suite.database
    const [one] = await suite.due(await suite.webhook(), 1)
    const rows = await read()
    await dataSource.transaction(async (manager) => {
      await manager.query('SELECT 1 FROM delivery WHERE id = $1 FOR UPDATE', [one!.deliveryId])
      expect(await later(rows, 30_000)).to.deep.equal([])
    })
    expect(await later(rows, 30_000)).to.have.length(1)
  })

  it('is taken also where it was made due by hand, to the microsecond', async () => {
    const [one] = await suite.due(await suite.webhook(), 1)
    await suite.database.dataSource.query(
      `UPDATE delivery SET sweep_at = date_trunc('second', now()) - interval '0.5 s' + interval '123 microseconds'
        WHERE id = $1`,
      [one!.deliveryId],
    )
    expect(await later(await read(), 30_000)).to.have.length(1)
  })

  it('notes since when its workflow is paused, and that it is not any more', async () => {
    const [one] = await suite.due(await suite.webhook(), 1, { to: { state: 'waiting', workflow: true } })
    const since = new Date('2026-01-02T03:04:05Z')
    const [{ sweepAt } = {}] = await findOverdue(suite.database.dataSource, 10)
    const rows = await later([{ deliveryId: one!.deliveryId, sweepAt: sweepAt! }], 30_000, since)
    expect(await suite.row(one!)).to.deep.include({ paused_since: since, state: 'waiting' })
    await later(rows, 30_000)
    expect(await suite.row(one!)).to.include({ paused_since: null })
  })

  it('is settled where it is final, and left alone where it is not', async () => {
    const [one] = await suite.due(await suite.webhook(), 1, { to: { state: 'completed' } })
    await later(await findOwedWorkflows(suite.database.dataSource, 10), null)
    expect(await suite.row(one!)).to.include({ sweep_at: null })
    const [open] = await suite.due(await suite.webhook(), 1)
    const before = await suite.row(open!)
    expect(await later(await read(), null)).to.deep.equal([])
    expect(await suite.row(open!)).to.deep.equal(before)
  })
})

describe('a delivery whose workflow was started', () => {
  const suite = useDueRows()
  const mark = (...deliveries: CommittedDelivery[]) =>
    markWorkflowsStarted(suite.database.dataSource, idsOf(deliveries))

  it('is checked by the sweeper 15 s after its next attempt is due', async () => {
    const webhook = await suite.webhook()
    const states: RowState[] = [
      { state: 'pending' },
      { state: 'waiting', dueInMs: 100_000 },
      { state: 'waiting', dueInMs: -100_000 },
    ]
    for (const to of states) {
      const one = await suite.deliveryIn(to, webhook)
      await mark(one)
      const row = await suite.row(one)
      expect(row.workflow_started_at).to.be.instanceOf(Date)
      const dueAtMs = Math.max(row.workflow_started_at!.getTime(), row.next_attempt_at?.getTime() ?? 0)
      expect(row.sweep_at!.getTime()).to.equal(dueAtMs + 15_000)
    }
  })

  it('keeps what its run has set, and the start that was noted first', async () => {
    const one = await suite.deliveryIn({ state: 'in_progress' })
    const { sweep_at: sweepAt } = await suite.row(one)
    await mark(one)
    const marked = await suite.row(one)
    expect(marked.sweep_at).to.deep.equal(sweepAt)
    expect(marked.workflow_started_at).to.be.instanceOf(Date)
    await mark(one)
    expect(await suite.row(one)).to.deep.equal(marked)
  })

  it('is owed a signal where it ended meanwhile and was owed a workflow, and nothing where it was owed nothing', async () => {
    const { dataSource } = suite.database
    const webhook = await suite.webhook()
    const [owed] = await suite.due(webhook, 1, { to: { state: 'completed' } })
    const settled = await suite.deliveryIn({ state: 'stopped', attempts: 0 }, webhook)
    await mark(owed!, settled)
    expect(idsOf(await findOwedSignals(dataSource, 10))).to.deep.equal(idsOf([owed!]))
    expect(await findOwedWorkflows(dataSource, 10)).to.deep.equal([])
    expect(await suite.row(settled)).to.include({ state: 'stopped', sweep_at: null })
  })
})

describe("the sweep of everything, after Temporal's data is gone", () => {
  const suite = useDueRows()

  it('makes what had a workflow and is late due within seconds, in turn by webhook, and nothing else', async () => {
    const { dataSource } = suite.database
    const [busy, quiet] = [await suite.webhook(), await suite.webhook()]
    const late: RowState = { state: 'waiting', dueInMs: -1_000, workflow: true, sweepInMs: 300_000 }
    const many: CommittedDelivery[] = []
    for (let index = 0; index < 3; index++) many.push(await suite.deliveryIn(late, busy))
    const few = await suite.deliveryIn(late, quiet)
    const others = [
      await suite.deliveryIn({ ...late, dueInMs: 60_000 }, quiet),
      await suite.deliveryIn({ ...late, workflow: false }, quiet),
      await suite.deliveryIn({ state: 'completed', workflow: true }, quiet),
      await suite.deliveryIn({ ...late, sweepInMs: -1_000 }),
    ]
    const before = await Promise.all(others.map(suite.row))
    await sweepDeliveries(dataSource)
    const inMs = async (delivery: CommittedDelivery) =>
      (await suite.row(delivery)).sweep_at!.getTime() - Date.now()
    for (const delivery of [...many, few]) expect(await inMs(delivery)).to.be.at.most(5)
    const places = await Promise.all(
      [...many, few].map(async (one) => (await suite.row(one)).sweep_at!.getTime()),
    )
    expect(new Set(places.slice(0, 3)).size).to.equal(3)
    expect(places[3]).to.equal(Math.min(...places))
    expect(await Promise.all(others.map(suite.row))).to.deep.equal(before)
  })
})
