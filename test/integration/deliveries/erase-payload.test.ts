import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { replay } from '../../../src/deliveries/protocol/change-deliveries.ts'
import { claimAttempts } from '../../../src/deliveries/protocol/claim.ts'
import { recordFirstSuccesses } from '../../../src/deliveries/protocol/record-attempts.ts'
import { asOperator } from '../../helpers/api/operator.ts'
import { useApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { openTransaction, textsOfTables, untilWaitingForLock } from '../../helpers/database/database.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from '../../helpers/deliveries/attempts.ts'
import { setRow, type RowState } from '../../helpers/deliveries/set-row.ts'
import { attemptRecord } from '../../helpers/deliveries/use-rows.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createReceiver, type Answer, type Receiver } from '../../helpers/receivers/receiver.ts'
import { readStream } from '../../helpers/stream/stream-reader.ts'

type Delivery = { id: string; webhookId: string }
type Published = { id: string; deliveries: Delivery[] }

describe("the erasure of an event's payload", () => {
  const suite = useApi()
  let dependencies: ReturnType<typeof attemptDependencies>
  let member: TestMember
  let receiver: Receiver
  let answer: Answer
  /** In the payload, and in what endpoints answer. */
  let marker: string

  before(() => {
    dependencies = attemptDependencies(suite.database.dataSource)
  })
  after(() => dependencies.httpClient.close())
  beforeEach(async () => {
    marker = randomUUID()
    answer = () => 503
    receiver = await createReceiver({ answer: (...args) => answer(...args) })
    member = await createMember(suite.database.dataSource)
  })
  afterEach(() => receiver.close())

  /** Answers with the marker of the payload, as an endpoint that repeats what it got. */
  const repeating =
    (status: number): Answer =>
    (_index, { body }, response) => {
      response.writeHead(status, { 'x-request-id': marker }).end(body)
      return null
    }
  const newWebhook = async (): Promise<string> => {
    const { organisationId } = member
    return (await createWebhookRow(suite.database.dataSource, { organisationId, url: receiver.url })).id
  }
  const call = (method: string, path: string, body?: unknown, headers = {}) =>
    suite.api.call(method, `/api/orgs/${member.organisationId}${path}`, {
      apiKey: member.apiKey,
      headers,
      ...(body === undefined ? {} : { body }),
    })
  async function publish(headers = {}): Promise<Published> {
    const body = { event: 'customer:created', data: { id: marker } }
    const { status, json, text } = await call('POST', '/events', body, headers)
    expect(status, text).to.equal(202)
    return json as Published
  }
  const erase = async ({ id }: Pick<Published, 'id'>): Promise<void> => {
    const { status, text } = await call('DELETE', `/events/${id}/payload`)
    expect(status, text).to.equal(204)
  }
  const pathOf = ({ id, webhookId }: Delivery): string => `/webhooks/${webhookId}/deliveries/${id}`
  const detail = async (delivery: Delivery) =>
    (await call('GET', pathOf(delivery))).json as Record<string, unknown> & { attempts: object[] }
  const setState = (delivery: Delivery, to: RowState) => setRow(suite.database.dataSource, delivery.id, to)
  const attempt = (delivery: Delivery, number = 1) =>
    createAttempt(dependencies)(
      attemptRequest(
        { organisationId: member.organisationId, deliveryId: delivery.id, ...delivery },
        { number },
      ),
      NO_SIGNALS,
    )
  async function tablesWithMarker(): Promise<string[]> {
    const texts = await textsOfTables(suite.database.dataSource)
    return [...texts].filter(([, text]) => text.includes(marker)).map(([name]) => name)
  }

  it('leaves it in no table, with one attempt in flight, one waiting, one failed and one completed', async () => {
    for (let count = 0; count < 5; count++) await newWebhook()
    const event = await publish({ 'idempotency-key': 'once' })
    const [inFlight, inFlightToo, waiting, failed, completed] = event.deliveries as [
      Delivery,
      Delivery,
      Delivery,
      Delivery,
      Delivery,
    ]
    answer = repeating(500)
    await attempt(waiting)
    await attempt(failed)
    await setState(failed, { state: 'failed', attempts: 1 })
    answer = repeating(200)
    await attempt(completed)
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    answer = async (index, post, response) => {
      await released
      return repeating(post.headers['x-webhook-event-id'] === inFlight.id ? 200 : 500)(index, post, response)
    }
    const inFlightAttempts = [attempt(inFlight), attempt(inFlightToo)]
    await eventually(() => expect(receiver.posts.length).to.equal(5))
    expect(await tablesWithMarker()).to.have.members(['event', 'attempt'])

    await erase(event)
    expect(await tablesWithMarker()).to.deep.equal([])
    expect(await detail(inFlight)).to.include({ state: 'in_progress' })
    release()
    expect(await Promise.all(inFlightAttempts)).to.deep.include({
      state: 'completed',
      attempts: 1,
      failureCode: null,
      statusCode: 200,
    })

    const states = await Promise.all(event.deliveries.map(detail))
    expect(
      states.map(({ state, stopReason, attemptCount }) => [state, stopReason, attemptCount]),
    ).to.deep.equal([
      ['completed', null, 1],
      ['stopped', 'payload_erased', 1],
      ['stopped', 'payload_erased', 1],
      ['failed', null, 1],
      ['completed', null, 1],
    ])
    for (const { payload, payloadErased, attempts, requestHeaders } of states) {
      expect({ payload, requestHeaders }).to.deep.equal({ payload: null, requestHeaders: {} })
      expect(payloadErased).to.include({ by: member.memberId })
      expect(attempts[0]).to.include({ response: null })
    }
    expect(receiver.posts.length).to.equal(5)
    expect(await tablesWithMarker()).to.deep.equal([])
  })

  it('is answered 204 again and recorded once, by the member or the operator', async () => {
    await newWebhook()
    const [one, other] = [await publish(), await publish()]
    await erase(one)
    await erase(one)
    const path = `/api/orgs/${member.organisationId}/events/${other.id}/payload`
    expect((await suite.api.call('DELETE', path, asOperator('manager'))).status).to.equal(204)
    expect((await suite.api.call('DELETE', path, asOperator('publisher'))).status).to.equal(403)
    const { json } = await call('GET', '/audit?action=event.payload_erased')
    expect((json as { data: Record<string, unknown>[] }).data).to.containSubset([
      {
        memberId: null,
        details: { actor: 'operator:manager', eventId: other.id, eventKey: 'customer:created' },
      },
      { memberId: member.memberId, details: { eventId: one.id, eventKey: 'customer:created' } },
    ])
    expect((json as { data: unknown[] }).data.length).to.equal(2)
    expect((await call('GET', `/events/${other.id}`)).json).to.deep.include({ id: other.id, payload: null })
    expect((await call('DELETE', `/events/${randomUUID()}/payload`)).status).to.equal(404)
  })

  it('refuses a retry and the signed request with 410, and leaves it out of retry jobs and replays', async () => {
    const webhookId = await newWebhook()
    const [erased, kept] = [await publish(), await publish()]
    for (const { deliveries } of [erased, kept])
      await setState(deliveries[0]!, { state: 'failed', attempts: 10 })
    await erase(erased)
    const path = pathOf(erased.deliveries[0]!)
    for (const [method, action] of [
      ['POST', 'retry'],
      ['GET', 'request'],
    ] as const) {
      const { status, json } = await call(method, `${path}/${action}`)
      expect({ status, code: (json as { code: string }).code }).to.deep.equal({
        status: 410,
        code: 'payload_erased',
      })
    }
    for (const mode of ['failed', 'force'])
      expect((await call('POST', '/webhooks/retry-deliveries', { mode })).json).to.include({ total: 1 })
    const since = '2026-01-01T00:00:00.000Z'
    expect(
      (await call('POST', `/webhooks/${webhookId}/replays`, { since, include: 'all', dryRun: true })).json,
    ).to.include({ total: 1 })
    const of = { organisationId: member.organisationId, webhookId }
    const eventIds = [erased.id, kept.id]
    expect((await replay(suite.database.dataSource, { ...of, eventIds })).length).to.equal(1)
  })

  it('has a repeat of the publication get its first answer, and publish nothing', async () => {
    await newWebhook()
    const event = await publish({ 'idempotency-key': 'once' })
    await erase(event)
    expect(await publish({ 'idempotency-key': 'once' })).to.deep.equal(event)
    expect(await tablesWithMarker()).to.deep.equal([])
  })

  it('closes the incident of a webhook that it leaves nothing unresolved of', async () => {
    const webhookId = await newWebhook()
    const event = await publish()
    await attempt(event.deliveries[0]!)
    const open = async () =>
      (
        (await call('GET', `/webhooks/${webhookId}/incidents`)).json as { data: { closedAt: unknown }[] }
      ).data.map(({ closedAt }) => closedAt === null)
    expect(await open()).to.deep.equal([true])
    await erase(event)
    expect(await open()).to.deep.equal([false])
  })

  it('leaves the incident open where switching off stops what an erasure has left over, and others', async () => {
    const webhookId = await newWebhook()
    const [erased, other] = [await publish(), await publish()]
    for (const { deliveries } of [erased, other]) await attempt(deliveries[0]!)
    const { dataSource } = suite.database
    await dataSource.query('UPDATE delivery SET is_erased = true WHERE event_id = $1', [erased.id])
    expect((await call('PATCH', `/webhooks/${webhookId}`, { enabled: false })).status).to.equal(200)
    const left = `SELECT closed_at IS NULL AS "isOpen", (SELECT count(*)::int FROM delivery WHERE webhook_id = $1 AND state <> 'stopped') AS open
                    FROM incident WHERE webhook_id = $1`
    expect(await dataSource.query(left, [webhookId])).to.deep.equal([{ isOpen: true, open: 0 }])
  })

  it('closes the incident once the attempt in progress of what it erased has failed', async () => {
    const webhookId = await newWebhook()
    const event = await publish()
    const [delivery] = event.deliveries as [Delivery]
    await attempt(delivery)
    await setState(delivery, { state: 'waiting', attempts: 1, dueInMs: 0 })
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    answer = () => released.then(() => 503)
    const second = attempt(delivery, 2)
    await eventually(() => expect(receiver.posts.length).to.equal(2))
    await erase(event)
    const open = `SELECT closed_at IS NULL AS "isOpen" FROM incident WHERE webhook_id = $1`
    expect(await suite.database.dataSource.query(open, [webhookId])).to.deep.equal([{ isOpen: true }])
    release()
    expect(await second).to.include({ state: 'stopped' })
    expect(await suite.database.dataSource.query(open, [webhookId])).to.deep.equal([{ isOpen: false }])
  })

  it('reaches a stream that reads the event later, in the place of the event', async () => {
    await newWebhook()
    const [before, erased, after] = [await publish(), await publish(), await publish()]
    await erase(erased)
    const reader = await readStream(suite.api.url, member.organisationId, {
      apiKey: member.apiKey,
      lastEventId: before.id,
    })
    const got = () => reader.events.filter(({ event }) => event !== 'position')
    await eventually(() => expect(got().length).to.equal(2))
    expect(got()[0]).to.include({
      id: erased.id,
      event: 'payload_erased',
      data: '{"event":"customer:created"}',
    })
    expect(got()[1]).to.include({ id: after.id, event: 'customer:created' })
    await reader.close()
  })

  describe('at the same instant as', () => {
    /** Runs `work` against an erasure that has not committed yet. Returns what it returned. */
    async function meanwhile<T>(event: Published, work: () => Promise<T>, isWaiting = true): Promise<T> {
      const { dataSource } = suite.database
      const blocker = await openTransaction(dataSource)
      // The audit entry is written last, and has to wait.
      await blocker.query('LOCK TABLE audit_entry IN EXCLUSIVE MODE')
      const erasing = erase(event)
      await untilWaitingForLock(dataSource)
      const working = work()
      await (isWaiting ? untilWaitingForLock(dataSource, 2) : working)
      await blocker.commitTransaction()
      await blocker.release()
      const [result] = await Promise.all([working, erasing])
      return result
    }

    it('a claim: it is refused', async () => {
      await newWebhook()
      const event = await publish()
      const { organisationId } = member
      const run = { organisationId, deliveryId: event.deliveries[0]!.id, number: 1, owner: randomUUID() }
      const claim = () => claimAttempts(suite.database.dataSource, [{ ...run, isWorkflow: false }], 15_000)
      const claimed = await meanwhile(event, claim, false)
      expect(claimed).to.deep.equal([null])
      expect(await detail(event.deliveries[0]!)).to.include({
        state: 'stopped',
        stopReason: 'payload_erased',
      })
    })

    it('the record of a first success: it is kept without the answer', async () => {
      await newWebhook()
      const event = await publish()
      const [delivery] = event.deliveries as [Delivery]
      const owner = randomUUID()
      await setState(delivery, { state: 'in_progress', owner, leaseMs: 15_000 })
      const { organisationId } = member
      const response = { headers: { 'x-request-id': marker }, body: marker, truncated: true }
      const of = { deliveryId: delivery.id, organisationId, url: receiver.url }
      const recorded = await meanwhile(event, () =>
        recordFirstSuccesses(suite.database.dataSource, [attemptRecord(of, { owner, response })], null),
      )
      expect(recorded).to.deep.equal([true])
      expect(await detail(delivery)).to.include({ state: 'completed', attemptCount: 1 })
      expect(await tablesWithMarker()).to.deep.equal([])
    })

    it('a replay: it makes no delivery', async () => {
      const event = await publish()
      const webhookId = await newWebhook()
      const of = { organisationId: member.organisationId, webhookId, eventIds: [event.id] }
      expect(await meanwhile(event, () => replay(suite.database.dataSource, of))).to.deep.equal([])
    })
  })
})
