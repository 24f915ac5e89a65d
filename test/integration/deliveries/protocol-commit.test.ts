import { expect } from 'chai'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import {
  commitEvents,
  type CommittedDelivery,
  type NewEvent,
  type Rooms,
} from '../../../src/deliveries/protocol/commit-events.ts'
import { newId } from '../../../src/ids.ts'
import { createMember, createWebhookRow, testEvent } from '../../helpers/database/factories.ts'
import { useRows, type OwnWebhook } from '../../helpers/deliveries/use-rows.ts'

const LEASE_MS = 20_000
const SWEEP_AFTER_MS = 3_000

const NO_ROOM: Rooms = { inAll: 1_000, defaultRoom: 0, webhooks: [] }

describe('the commit of events', () => {
  const suite = useRows()

  const event = (organisationId: string, changes: Partial<NewEvent> = {}): NewEvent => ({
    ...testEvent(organisationId),
    body: Buffer.from(`{"data":"${newId()} ☂"}`),
    ...changes,
  })
  const commit = (events: readonly NewEvent[], rooms = NO_ROOM): Promise<CommittedDelivery[][]> =>
    commitEvents(suite.database.dataSource, events, {
      rooms,
      leaseMs: LEASE_MS,
      sweepAfterMs: SWEEP_AFTER_MS,
    })
  const anotherWebhook = async (
    { organisationId }: OwnWebhook,
    options: { subscribedEventKeys?: string[]; enabled?: boolean } = {},
  ): Promise<OwnWebhook> => {
    const url = 'https://other.example.com/'
    const { id } = await createWebhookRow(suite.database.dataSource, { organisationId, url, ...options })
    return { organisationId, webhookId: id }
  }
  const stored = (eventId: string) =>
    suite.database.dataSource.query<{ body: Buffer; is_test: boolean }[]>(
      'SELECT body, is_test FROM event WHERE id = $1',
      [eventId],
    )

  it('leaves deliveries pending, for any process after a while, where there is no room', async () => {
    const webhook = await suite.webhook()
    const [[delivery] = []] = await commit([event(webhook.organisationId)])
    expect(delivery).to.include({ ...webhook, eventKey: 'customer:created', claim: null })
    const row = await suite.row(delivery!)
    expect(row).to.include({ state: 'pending', attempts: 0, runs: 0, owner: null, lease_until: null })
    expect(row).to.include({ workflow_started_at: null, next_attempt_at: null, completed_at: null })
    expect(row.sweep_at!.getTime() - Date.now()).to.be.within(SWEEP_AFTER_MS - 15_000, SWEEP_AFTER_MS)
  })

  it('has as many deliveries of each webhook in progress as there is room for, each by a run of its own', async () => {
    const one = await suite.webhook()
    const two = await anotherWebhook(one)
    const three = await anotherWebhook(one)
    const events = Array.from({ length: 5 }, () => event(one.organisationId))
    const rooms = {
      inAll: 1_000,
      defaultRoom: 1,
      webhooks: [
        { webhookId: one.webhookId, room: 3 },
        { webhookId: two.webhookId, room: 0 },
      ],
    }
    const committed = (await commit(events, rooms)).flat()
    expect(committed).to.have.length(15)
    const begun = ({ webhookId }: OwnWebhook) =>
      committed.filter((delivery) => delivery.webhookId === webhookId).map(({ claim }) => claim !== null)
    // Those first that were given first.
    expect(begun(one)).to.deep.equal([true, true, true, false, false])
    expect(begun(two)).to.deep.equal([false, false, false, false, false])
    expect(begun(three)).to.deep.equal([true, false, false, false, false])
    const owners = committed.flatMap(({ claim }) => claim?.owner ?? [])
    expect(new Set(owners).size).to.equal(4)
    for (const delivery of committed) {
      const row = await suite.row(delivery)
      const state = delivery.claim === null ? 'pending' : 'in_progress'
      expect(row).to.include({
        state,
        owner: delivery.claim?.owner ?? null,
        runs: delivery.claim === null ? 0 : 1,
      })
      if (delivery.claim === null) continue
      expect(row.lease_until!.getTime() - Date.now()).to.be.within(LEASE_MS - 15_000, LEASE_MS)
      expect(row.sweep_at).to.deep.equal(row.lease_until)
    }
  })

  it('has no more in progress than there is room for in all, those first that were given first', async () => {
    const one = await suite.webhook()
    await anotherWebhook(one)
    const events = [event(one.organisationId), event(one.organisationId)]
    const begun = (await commit(events, { inAll: 3, defaultRoom: 2, webhooks: [] })).map((deliveries) =>
      deliveries.filter(({ claim }) => claim !== null),
    )
    expect(begun.map(({ length }) => length)).to.deep.equal([2, 1])
  })

  it('is as old as its statement, which may have waited for a connection', async () => {
    const { organisationId } = await suite.webhook()
    const single = createDataSource({ url: suite.database.url, poolSize: 1 })
    await single.initialize()
    const holder = single.createQueryRunner()
    await holder.connect()
    const rooms = { inAll: 1_000, defaultRoom: 1, webhooks: [] }
    const committing = commitEvents(single, [event(organisationId)], {
      rooms,
      leaseMs: LEASE_MS,
      sweepAfterMs: SWEEP_AFTER_MS,
    })
    const releasedAtMs = performance.now()
    await holder.release()
    expect((await committing)[0]![0]!.claim!.claimedAtMs).to.be.at.least(releasedAtMs)
    await single.destroy()
  })

  it('addresses webhooks that take the key, of its own organisation, and nothing else', async () => {
    const one = await suite.webhook({ subscribedEventKeys: ['customer:created', 'invoice:paid'] })
    const all = await anotherWebhook(one)
    await anotherWebhook(one, { subscribedEventKeys: ['invoice:paid'] })
    await anotherWebhook(one, { enabled: false })
    const deleted = await anotherWebhook(one)
    await suite.change(deleted.webhookId, 'deleted_at = now(), secret = NULL')
    await suite.webhook()
    const [deliveries = []] = await commit([event(one.organisationId)])
    const addressed = deliveries.map(({ webhookId }) => webhookId)
    expect(addressed).to.have.members([one.webhookId, all.webhookId])
  })

  it('keeps the bytes of each event, and returns the deliveries of each, also of one that no webhook takes', async () => {
    const webhook = await suite.webhook({ subscribedEventKeys: ['customer:created'] })
    const other = await createMember(suite.database.dataSource)
    const events = [
      event(webhook.organisationId),
      event(webhook.organisationId, { key: 'invoice:paid' }),
      event(other.organisationId, { body: Buffer.alloc(0) }),
      event(webhook.organisationId, { body: Buffer.from([0, 255, 10]) }),
    ]
    const committed = await commit(events, { inAll: 1_000, defaultRoom: 2, webhooks: [] })
    expect(committed.map((deliveries) => deliveries.length)).to.deep.equal([1, 0, 0, 1])
    for (const { id, body } of events) expect(await stored(id)).to.deep.equal([{ body, is_test: false }])
    expect(committed[3]![0]!.claim ?? {}).to.deep.include({ body: events[3]!.body, traceId: 'trace-1' })
  })

  it('writes nothing where one event cannot be written', async () => {
    const webhook = await suite.webhook()
    const events = [event(webhook.organisationId), event('org_unknown')]
    expect(await commit(events).catch((error: unknown) => error)).to.be.instanceOf(Error)
    expect(await stored(events[0]!.id)).to.deep.equal([])
  })

  describe('of a test event', () => {
    it('addresses its webhook only, whatever that is subscribed to', async () => {
      const webhook = await suite.webhook({ subscribedEventKeys: ['invoice:paid'] })
      await anotherWebhook(webhook)
      const { organisationId, webhookId } = webhook
      const test = event(organisationId, { key: 'webhook:test', webhookId })
      const [deliveries = []] = await commit([test], { inAll: 1_000, defaultRoom: 1, webhooks: [] })
      expect(deliveries).to.have.length(1)
      expect(deliveries[0]).to.include({ webhookId })
      expect(await suite.row(deliveries[0]!)).to.include({ state: 'in_progress', is_test: true })
      expect(await stored(test.id)).to.deep.include({ body: test.body, is_test: true })
    })

    it('writes no event where the webhook is switched off, deleted, of another organisation or does not take the key', async () => {
      const off = await suite.webhook()
      await suite.change(off.webhookId, 'enabled = false')
      const deleted = await suite.webhook()
      await suite.change(deleted.webhookId, 'deleted_at = now(), secret = NULL')
      const foreign = { ...(await suite.webhook()), organisationId: off.organisationId }
      const narrow = await suite.webhook({ subscribedEventKeys: ['invoice:paid'] })
      for (const { organisationId, webhookId } of [off, deleted, foreign, narrow]) {
        const test = event(organisationId, { webhookId })
        expect(await commit([test])).to.deep.equal([[]])
        expect(await stored(test.id)).to.deep.equal([])
      }
    })
  })
})
