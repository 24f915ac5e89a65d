import { expect } from 'chai'
import { deliveryStats } from '../../../src/db/queries/overview.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { attempt, type AttemptFacts } from './delivery-rows.ts'
import { useApi } from '../../helpers/api/api.ts'

type Latest = { deliveryId: string; number: number; payload: unknown }
type Row = {
  webhookId: string
  waitingForFirstAttempt: number
  oldestWaitingForFirstAttemptMs: number | null
  waitingForRetry: number
  permanentlyFailed: number
  stopped: number
  latestAttempt: Latest | null
}

describe('GET /webhooks/delivery-stats', () => {
  const suite = useApi()
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })

  const get = (apiKey = member.apiKey) =>
    suite.api.call('GET', `/api/orgs/${member.organisationId}/webhooks/delivery-stats`, { apiKey })

  async function stats(apiKey?: string): Promise<Row[]> {
    const answer = await get(apiKey)
    expect(answer.status, answer.text).to.equal(200)
    return (answer.json as { data: Row[] }).data
  }

  const createWebhook = (subscribedEventKeys = ['*'], organisationId = member.organisationId) =>
    createWebhookRow(suite.database.dataSource, {
      organisationId,
      url: 'https://receiver.example.com/',
      subscribedEventKeys,
    })

  async function attempted(eventKey: string, ...attempts: AttemptFacts[]): Promise<string> {
    const [delivery] = await publishRow(suite.database.dataSource, member.organisationId, { eventKey })
    for (const [index, facts] of attempts.entries()) {
      await attempt(suite.database.dataSource, delivery!, index + 1, facts)
    }
    return delivery!.deliveryId
  }

  it('answers an empty list to an organisation without webhooks', async () => {
    expect((await get()).text).to.equal('{"data":[]}')
  })

  it('has a megabyte of payloads in memory at a time', async () => {
    const { dataSource } = suite.database
    const { organisationId } = member
    for (let count = 0; count < 12; count++) await createWebhook()
    const deliveries = await publishRow(dataSource, organisationId, { eventKey: 'invoice:paid' })
    for (const delivery of deliveries) await attempt(dataSource, delivery, 1)
    const payload = JSON.stringify({
      ...{ event: 'invoice:paid', data: { note: 'x'.repeat(200_000) } },
      ...{ timestamp: 0, traceId: 'trace-1', triggeredBy: null },
    })
    await dataSource.query(`UPDATE event SET body = convert_to($2, 'UTF8') WHERE organisation_id = $1`, [
      organisationId,
      payload,
    ])
    const sizes: number[] = []
    for await (const rows of deliveryStats(dataSource, organisationId))
      sizes.push(rows.reduce((sum, { latestAttempt }) => sum + (latestAttempt?.body?.length ?? 0), 0))
    expect(sizes).to.have.length(3)
    for (const size of sizes) expect(size).to.be.within(1, 1_024 * 1_024)
    const answered = await stats()
    expect(answered.map(({ latestAttempt }) => JSON.stringify(latestAttempt?.payload))).to.deep.equal(
      Array.from({ length: 12 }, () => payload),
    )
  })

  it('has one row per webhook, oldest first, and none for a deleted one', async () => {
    const first = await createWebhook()
    const second = await createWebhook()
    const deleted = await createWebhook()
    await suite.database.dataSource.query('UPDATE webhook SET deleted_at = now() WHERE id = $1', [deleted.id])
    await createWebhook(['*'], (await createMember(suite.database.dataSource)).organisationId)
    expect(await stats()).to.deep.equal(
      [first, second].map(({ id }) => ({
        webhookId: id,
        waitingForFirstAttempt: 0,
        oldestWaitingForFirstAttemptMs: null,
        waitingForRetry: 0,
        permanentlyFailed: 0,
        stopped: 0,
        latestAttempt: null,
      })),
    )
  })

  for (const workflow of [false, true])
    it(`counts what waits for its first attempt, with the age of the oldest, ${workflow ? 'with' : 'without'} a workflow`, async () => {
      const { dataSource } = suite.database
      const busy = await createWebhook(['invoice:paid'])
      await createWebhook(['customer:created'])
      const ids = [
        await attempted('invoice:paid'),
        await attempted('invoice:paid'),
        await attempted('invoice:paid'),
      ]
      await setRow(dataSource, ids, { state: 'pending', workflow })
      await dataSource.query(`UPDATE delivery SET created_at = now() - interval '7 minutes' WHERE id = $1`, [
        ids[0],
      ])
      await attempted('invoice:paid', {})
      await attempted('customer:created', {})
      const [first, second] = await stats()
      expect(first).to.include({ webhookId: busy.id, waitingForFirstAttempt: 3, waitingForRetry: 1 })
      expect(first?.oldestWaitingForFirstAttemptMs).to.be.within(420_000, 480_000)
      expect(second).to.include({ waitingForFirstAttempt: 0, oldestWaitingForFirstAttemptMs: null })
      await dataSource.query('UPDATE delivery SET is_test = true WHERE id = $1', [ids[0]])
      expect((await stats())[0]?.waitingForFirstAttempt).to.equal(2)
    })

  it('shows the latest attempt with its full error and the payload', async () => {
    const webhook = await createWebhook()
    const error = `The endpoint answered HTTP 500: ${'what it said '.repeat(40)}`
    await attempted('customer:created', { startedAt: new Date('2026-03-01T09:00:00Z') })
    const latest = await attempted(
      'invoice:paid',
      { startedAt: new Date('2026-03-01T09:59:00Z') },
      { startedAt: new Date('2026-03-01T10:00:00.250Z'), statusCode: 500, error },
    )
    await attempted('customer:created', { startedAt: new Date('2026-03-01T09:30:00Z') })
    const [row] = await stats()
    expect(Object.keys(row!)).to.deep.equal([
      'webhookId',
      'waitingForFirstAttempt',
      'oldestWaitingForFirstAttemptMs',
      'waitingForRetry',
      'permanentlyFailed',
      'stopped',
      'latestAttempt',
    ])
    const { payload, ...rest } = row!.latestAttempt!
    expect(row!.webhookId).to.equal(webhook.id)
    expect(rest).to.deep.equal({
      deliveryId: latest,
      eventKey: 'invoice:paid',
      number: 2,
      attemptedAt: '2026-03-01T10:00:00.250Z',
      outcome: 'failed',
      statusCode: 500,
      error,
    })
    expect(payload).to.include({ event: 'invoice:paid' })
  })

  it('shows a latest attempt that succeeded, and one that got no answer', async () => {
    await createWebhook(['invoice:paid'])
    await createWebhook(['customer:created'])
    await attempted('invoice:paid', { next: 'completed', statusCode: 204 })
    await attempted('customer:created', {
      failureCode: 'dns_error',
      statusCode: null,
      error: 'No such host.',
    })
    const [confirmed, unanswered] = await stats()
    expect(confirmed!.latestAttempt).to.include({ outcome: 'succeeded', statusCode: 204, error: null })
    expect(unanswered!.latestAttempt).to.include({
      outcome: 'failed',
      statusCode: null,
      error: 'No such host.',
    })
  })

  it('shows the payload byte for byte as it is delivered', async () => {
    await createWebhook()
    const data = String.raw`{"z":1.0,"big":12345678901234567890,"nul":"\u0000","lone":"\ud800","esc":"\/"}`
    await suite.api.call('POST', `/api/orgs/${member.organisationId}/events`, {
      apiKey: member.apiKey,
      raw: `{"event":"comment:created","data":${data},"timestamp":1700000000000,"traceId":"t-1"}`,
    })
    await attempt(suite.database.dataSource, suite.api.started.at(-1)!, 1)
    expect((await get()).text).to.include(
      `"payload":{"event":"comment:created","data":${data},"timestamp":1700000000000,"traceId":"t-1","triggeredBy":null}}}`,
    )
  })

  it('excludes stopped, discarded and test deliveries', async () => {
    const webhook = await createWebhook()
    const { organisationId, apiKey } = member
    const path = `/api/orgs/${organisationId}/webhooks/${webhook.id}`
    await attempted('invoice:paid', {})
    const discarded = await attempted('invoice:paid', { next: 'failed' })
    await suite.api.call('POST', `${path}/deliveries/${discarded}/discard`, { apiKey })
    await suite.api.call('POST', `${path}/test`, { apiKey })
    expect((await stats())[0]).to.include({ waitingForRetry: 1, permanentlyFailed: 0, stopped: 1 })
    await suite.api.call('PATCH', path, { apiKey, body: { enabled: false } })
    expect((await stats())[0]).to.include({ waitingForRetry: 0, permanentlyFailed: 0, stopped: 2 })
  })
})
