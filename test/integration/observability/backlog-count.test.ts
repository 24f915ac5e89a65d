import { EMPTY_BACKLOG } from '../../helpers/deliveries/backlog.ts'
import { expect } from 'chai'
import { countBacklog, countBacklogInTime } from '../../../src/db/queries/backlog.ts'
import { openIncident } from '../../../src/db/queries/incidents.ts'
import { newId } from '../../../src/ids.ts'
import { SETTINGS } from '../../../src/config/settings.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { openTransaction, useDatabase } from '../../helpers/database/database.ts'

/** The longest attempt that can be configured, and the margin of its claim. */
const LONGEST_LEASE_MS = SETTINGS.attemptTimeoutMs.parse('60000') + 5_000

describe('the backlog count', () => {
  const database = useDatabase()
  let organisationId: string

  beforeEach(async () => {
    await database.dataSource.query('TRUNCATE delivery, webhook CASCADE')
    organisationId = (await createMember(database.dataSource)).organisationId
    await webhook()
  })

  const run = (sql: string, ...parameters: unknown[]) => database.dataSource.query<unknown>(sql, parameters)
  const webhook = async (): Promise<string> =>
    (await createWebhookRow(database.dataSource, { organisationId, url: 'https://receiver.example.com/' })).id
  const publish = async () => (await publishRow(database.dataSource, organisationId))[0]!.deliveryId
  const change = (id: string, assignments: string) =>
    run(`UPDATE delivery SET ${assignments} WHERE id = $1`, id)
  const count = () => countBacklog(database.dataSource)

  const claim = (deliveryId: string, leaseMs: number) =>
    setRow(database.dataSource, deliveryId, { state: 'in_progress', leaseMs, workflow: true })

  it('is zero in an empty database', async () => {
    expect(await count()).to.deep.equal(EMPTY_BACKLOG)
  })

  it('counts by state, without completed and stopped deliveries', async () => {
    const states = [
      'pending',
      'waiting',
      'waiting',
      'failed',
      'failed',
      'failed',
      'completed',
      'stopped',
    ] as const
    for (const state of states) await setRow(database.dataSource, await publish(), { state })
    expect(await count()).to.include({ pending: 1, inProgress: 0, waiting: 2, failed: 3 })
  })

  it('counts an attempt in progress, even under the longest lease', async () => {
    await claim(await publish(), LONGEST_LEASE_MS)
    expect(await count()).to.include({ pending: 0, inProgress: 1 })
  })

  it('counts deliveries that wait for many hours', async () => {
    await setRow(database.dataSource, await publish(), { state: 'waiting', dueInMs: 36_000_000 })
    expect(await count()).to.include({ waiting: 1 })
  })

  it('returns the age of the oldest delivery without an attempt', async () => {
    await publish()
    await change(await publish(), `created_at = now() - interval '90 seconds'`)
    const { oldestPendingAge } = await count()
    expect(oldestPendingAge.idle).to.be.closeTo(90, 5)
    expect(oldestPendingAge.busy).to.equal(0)
  })

  it('counts as overdue what was due a minute ago, even when its worker was lost', async () => {
    await change(await publish(), `created_at = now() - interval '50 seconds'`)
    await change(await publish(), `created_at = now() - interval '70 seconds'`)
    for (const dueInMs of [-50_000, -70_000])
      await setRow(database.dataSource, await publish(), { state: 'waiting', dueInMs, sweepInMs: 0 })
    const lost = await publish()
    await claim(lost, 1)
    await change(
      lost,
      `created_at = now() - interval '70 seconds', lease_until = now() - interval '1 second'`,
    )
    expect((await count()).overdue).to.deep.equal({ busy: 0, idle: 3 })
  })

  it('counts no age of one that an operator has paused', async () => {
    const paused = await publish()
    await change(paused, `created_at = now() - interval '2 minutes', paused_since = now()`)
    expect((await count()).oldestPendingAge).to.deep.equal({ busy: 0, idle: 0 })
    expect(await count()).to.include({ pending: 1, paused: 1 })
  })

  it('distinguishes deliveries that wait for other attempts to their webhook', async () => {
    const [late, underWay] = [await publish(), await publish()]
    await change(late, `created_at = now() - interval '2 minutes'`)
    await claim(underWay, 60_000)
    const { overdue, oldestPendingAge } = await count()
    expect(overdue).to.deep.equal({ busy: 1, idle: 0 })
    expect(oldestPendingAge.busy).to.be.closeTo(120, 5)
    expect(oldestPendingAge.idle).to.equal(0)
  })

  it('counts open incidents', async () => {
    for (const isClosed of [false, false, true]) {
      const incident = { id: newId(), organisationId, webhookId: await webhook() }
      await openIncident(database.dataSource, incident)
      if (isClosed) await run('UPDATE incident SET closed_at = now() WHERE id = $1', incident.id)
    }
    expect(await count()).to.include({ openIncidents: 2 })
  })

  it('is cancelled when it takes too long', async () => {
    const locked = await openTransaction(database.dataSource)
    await locked.query('LOCK TABLE incident IN ACCESS EXCLUSIVE MODE')
    const error: unknown = await countBacklogInTime(database.dataSource, 50).catch(
      (reason: unknown) => reason,
    )
    await locked.rollbackTransaction()
    await locked.release()
    expect(error).to.include({ code: '57014' })
    expect(await countBacklogInTime(database.dataSource, 2_000)).to.include({ pending: 0 })
  })
})
