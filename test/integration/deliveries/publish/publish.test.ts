import { expect } from 'chai'
import { createPublisher } from '../../../../src/deliveries/publish/publish.ts'
import type { CommittedDelivery, Commits } from '../../../../src/deliveries/protocol/commit-events.ts'
import { openTransaction, useDatabase } from '../../../helpers/database/database.ts'
import { useHeldTimeouts } from '../../../helpers/use-mock-time.ts'
import {
  createMember,
  createWebhookRow,
  noBacklogLimit,
  testCommits,
  testEvent,
  type TestMember,
} from '../../../helpers/database/factories.ts'
import { useApi } from '../../../helpers/api/api.ts'

/** So far the clock of the database is ahead of that of this machine. */
const AHEAD_MS = 3_600_000

describe('POST /events', () => {
  const suite = useApi({ clock: { nowMs: () => Date.now() + AHEAD_MS + 0.4 } })
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })

  const publish = (options: { body?: unknown; raw?: string; headers?: Record<string, string> }) =>
    suite.api.call('POST', `/api/orgs/${member.organisationId}/events`, { apiKey: member.apiKey, ...options })

  async function storedBody(id: string): Promise<string> {
    const [row] = await suite.database.dataSource.query<{ body: Buffer }[]>(
      'SELECT body FROM event WHERE id = $1',
      [id],
    )
    return row!.body.toString('utf8')
  }

  it('commits one delivery per enabled webhook that subscribed to the key or to *', async () => {
    const { organisationId } = member
    const url = 'https://receiver.example.com/'
    const byKey = await createWebhookRow(suite.database.dataSource, {
      organisationId,
      url,
      subscribedEventKeys: ['invoice:paid', 'customer:created'],
    })
    const byWildcard = await createWebhookRow(suite.database.dataSource, { organisationId, url })
    await createWebhookRow(suite.database.dataSource, {
      organisationId,
      url,
      subscribedEventKeys: ['customer:deleted'],
    })
    await createWebhookRow(suite.database.dataSource, { organisationId, url, enabled: false })
    const foreign = await createMember(suite.database.dataSource)
    await createWebhookRow(suite.database.dataSource, { organisationId: foreign.organisationId, url })

    const answer = await publish({ body: { event: 'customer:created', data: { id: 'cus_1' } } })
    expect(answer.status).to.equal(202)
    const { id, deliveries } = answer.json as { id: string; deliveries: { id: string; webhookId: string }[] }
    expect(deliveries.map(({ webhookId }) => webhookId)).to.have.members([byKey.id, byWildcard.id])
    const kept = await suite.database.dataSource.query<{ id: string; state: string }[]>(
      'SELECT id, state FROM delivery WHERE event_id = $1',
      [id],
    )
    expect(kept.map((row) => row.id)).to.have.members(deliveries.map((delivery) => delivery.id))
    expect(kept.every((row) => row.state === 'pending')).to.equal(true)
    expect(suite.api.started.slice(-2).map(({ deliveryId }) => deliveryId)).to.have.members(
      deliveries.map((delivery) => delivery.id),
    )
  })

  it('keeps every token of data as it was written, and removes only the white space between them', async () => {
    const data = String.raw`{ "id" : "cus_1", "z": 1.0, "a": 1e3, "big": 12345678901234567890, "nul": "\u0000", "emoji": "😀 \ud83d\ude00", "sep": "  ", "esc": "\/ \t", "lone": "\ud800", "nested": [ { "b" : 1 , "a" : 2 } , [ ] ], "id2": "  two  spaces  " }`
    const answer = await publish({
      raw: `{\n  "event": "customer:created",\r\n\t"data": ${data},\n "timestamp": 1700000000000, "traceId": "t-1", "spanId": "s-1", "triggeredBy": {"id":"mem_1","name":"An"} }`,
    })
    expect(answer.status).to.equal(202)
    const body = await storedBody((answer.json as { id: string }).id)
    const verbatim = String.raw`{"id":"cus_1","z":1.0,"a":1e3,"big":12345678901234567890,"nul":"\u0000","emoji":"😀 \ud83d\ude00","sep":"  ","esc":"\/ \t","lone":"\ud800","nested":[{"b":1,"a":2},[]],"id2":"  two  spaces  "}`
    expect(body).to.equal(
      `{"event":"customer:created","data":${verbatim},"timestamp":1700000000000,"traceId":"t-1","spanId":"s-1","triggeredBy":{"id":"mem_1","name":"An"}}`,
    )
  })

  it('completes the envelope: the time by the clock of the database, generated trace id, null for system actions', async () => {
    const before = Date.now()
    const answer = await publish({ body: { event: 'comment:created', data: {} } })
    const envelope = JSON.parse(await storedBody((answer.json as { id: string }).id)) as Record<
      string,
      unknown
    >
    expect(Object.keys(envelope)).to.deep.equal(['event', 'data', 'timestamp', 'traceId', 'triggeredBy'])
    expect(envelope['timestamp']).to.be.within(before + AHEAD_MS, Date.now() + AHEAD_MS)
    expect(envelope['traceId']).to.match(/^[0-9a-f]{32}$/)
    expect(envelope['triggeredBy']).to.equal(null)
  })

  it('makes one event of a hundred simultaneous requests with one Idempotency-Key', async () => {
    await createWebhookRow(suite.database.dataSource, {
      organisationId: member.organisationId,
      url: 'https://receiver.example.com/',
    })
    const request = {
      body: { event: 'customer:created', data: { id: 'cus_1' } },
      headers: { 'idempotency-key': 'order-1' },
    }
    const answers = await Promise.all(Array.from({ length: 100 }, () => publish(request)))
    // On a busy machine some wait too long for their turn.
    for (const { status, text } of answers) expect(status, text).to.be.oneOf([202, 503])
    const accepted = answers.filter(({ status }) => status === 202)
    expect(accepted).to.have.length.above(1)
    expect(new Set(accepted.map(({ text }) => text)).size).to.equal(1)
    const [count] = await suite.database.dataSource.query<{ events: string; deliveries: string }[]>(
      `SELECT (SELECT count(*) FROM event WHERE organisation_id = $1) AS events, (SELECT count(*) FROM delivery WHERE organisation_id = $1) AS deliveries`,
      [member.organisationId],
    )
    expect(count).to.deep.equal({ events: '1', deliveries: '1' })
  })

  it('refuses an Idempotency-Key that came with another body, and leaves the first event alone', async () => {
    const headers = { 'idempotency-key': '"quoted-1"' }
    const first = await publish({ body: { event: 'customer:created', data: { id: 'cus_1' } }, headers })
    const second = await publish({
      body: { event: 'customer:created', data: { id: 'cus_2' } },
      headers: { 'idempotency-key': 'quoted-1' },
    })
    expect(second.status).to.equal(422)
    expect(second.json).to.include({ code: 'idempotency_key_reused' })
    const again = await publish({ body: { event: 'customer:created', data: { id: 'cus_1' } }, headers })
    expect(again.text).to.equal(first.text)
  })

  it('shows the event with its payload byte for byte, and the states of its deliveries', async () => {
    await createWebhookRow(suite.database.dataSource, {
      organisationId: member.organisationId,
      url: 'https://receiver.example.com/',
    })
    const published = await publish({
      raw: '{"event":"customer:created","data":{"id":"cus_1","amount":1.00}}',
    })
    const { id } = published.json as { id: string }
    const answer = await suite.api.call('GET', `/api/orgs/${member.organisationId}/events/${id}`, {
      apiKey: member.apiKey,
    })
    expect(answer.status).to.equal(200)
    expect(answer.text).to.include(`"payload":${await storedBody(id)}`)
    expect(answer.json).to.have.nested.property('deliveries[0].state', 'pending')
  })

  it('shows the newest thousand deliveries of an event that was replayed more often', async () => {
    const { dataSource } = suite.database
    const { organisationId, apiKey } = member
    await createWebhookRow(dataSource, { organisationId, url: 'https://receiver.example.com/' })
    const { id } = (await publish({ body: { event: 'customer:created', data: { id: 'cus_1' } } })).json as {
      id: string
    }
    await dataSource.query(
      `INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, completed_at)
       SELECT uuidv7(interval '1 hour'), event_id, webhook_id, organisation_id, 'completed', 1, now()
         FROM delivery, generate_series(1, 1000) WHERE event_id = $1`,
      [id],
    )
    const answer = await suite.api.call('GET', `/api/orgs/${organisationId}/events/${id}`, { apiKey })
    const { deliveries } = answer.json as { deliveries: { id: string; state: string }[] }
    expect(deliveries).to.have.lengthOf(1_000)
    expect(deliveries.filter(({ state }) => state !== 'completed')).to.deep.equal([])
    expect(deliveries).to.deep.equal(deliveries.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
  })
})

describe('an event whose sender has given up', () => {
  const database = useDatabase()
  const timeouts = useHeldTimeouts()

  it('is delivered from its commit on, with an Idempotency-Key and without', async () => {
    const { dataSource } = database
    const { organisationId, memberId } = await createMember(dataSource)
    await createWebhookRow(dataSource, { organisationId, url: 'https://receiver.example.com/' })
    const begun: boolean[] = []
    const dispatcher = {
      start: (committed: readonly CommittedDelivery[]) => {
        begun.push(...committed.map(({ claim }) => claim !== null))
      },
    }
    const { reserve, leaseMs } = testCommits({ room: 1 })
    let sent = 0
    const commits: Commits = {
      leaseMs,
      reserve(audiences, count) {
        sent++
        return reserve(audiences, count)
      },
    }
    const publish = createPublisher({ dataSource, commits, dispatcher, backlog: noBacklogLimit })
    const holder = await openTransaction(dataSource)
    await holder.query('LOCK TABLE delivery IN SHARE MODE')
    const key = { organisationId, memberId, operation: 'o', key: 'k', digest: Buffer.alloc(32) }
    const answers = [key, null].map((given) => publish(testEvent(organisationId), given))
    const given = Promise.allSettled(answers)
    await timeouts.until(() => sent === 2)
    await timeouts.pass(2_500)
    await timeouts.pass(6_500)
    for (const answer of await given)
      expect(answer).to.have.nested.include({ 'reason.name': 'DatabaseBusyError', 'reason.isBegun': true })
    await holder.commitTransaction()
    await holder.release()
    await timeouts.until(() => begun.length === 2)
    expect(begun).to.deep.equal([true, true])
  })
})
