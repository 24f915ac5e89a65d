import { expect } from 'chai'
import { listIncidents } from '../../../src/db/queries/incidents.ts'
import type { WebhookRow } from '../../../src/db/queries/webhooks.ts'
import { newId } from '../../../src/ids.ts'
import { type ApiResponse, useApi } from '../../helpers/api/api.ts'
import { FAILURE_TEXTS } from '../../../src/domain/attempt-outcome.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'

type Notification = {
  kind: number
  channel: string
  recipient: string | null
  state: string
  sentAt: string | null
}
type Incident = {
  id: string
  openedAt: string
  closedAt: string | null
  exhaustedAt: string | null
  failures: object
  notifications: Notification[]
}

const UNKNOWN_ID = '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c'
const OPENED = '2026-03-01T10:00:00.123Z'
const EXHAUSTED = '2026-03-02T11:00:00.000Z'
const CLOSED = '2026-03-03T12:30:00.500Z'
const NO_FAILURES = { failedAttempts: 0, deliveries: 0, isCapped: false, causes: [] }

describe('GET /webhooks/:id/incidents', () => {
  const suite = useApi()
  let member: TestMember
  let webhook: WebhookRow

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
    webhook = await createWebhook(member.organisationId)
  })

  const createWebhook = (organisationId: string): Promise<WebhookRow> =>
    createWebhookRow(suite.database.dataSource, { organisationId, url: 'https://receiver.example.com/' })

  const list = (options: { id?: string; apiKey?: string; query?: string } = {}): Promise<ApiResponse> => {
    const { id = webhook.id, apiKey = member.apiKey, query = '' } = options
    const path = `/api/orgs/${member.organisationId}/webhooks/${id}/incidents${query}`
    return suite.api.call('GET', path, { apiKey })
  }

  async function incidents(): Promise<Incident[]> {
    const answer = await list()
    expect(answer.status, answer.text).to.equal(200)
    return (answer.json as { data: Incident[] }).data
  }

  async function open(
    times: { openedAt: string; closedAt?: string; exhaustedAt?: string },
    owner: { organisationId?: string; webhookId?: string } = {},
  ): Promise<string> {
    const id = newId()
    const { organisationId = member.organisationId, webhookId = webhook.id } = owner
    const { openedAt, closedAt = null, exhaustedAt = null } = times
    await suite.database.dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, closed_at, exhausted_at)
       VALUES ($1, $2, $3, $4, $5, $6)`,
      [id, organisationId, webhookId, openedAt, closedAt, exhaustedAt],
    )
    return id
  }

  async function notify(incidentId: string, notification: Partial<Notification>): Promise<void> {
    const { kind = 1, channel = 'email', recipient = 'a@test.example' } = notification
    const { state = 'pending', sentAt = null } = notification
    await suite.database.dataSource.query(
      `INSERT INTO notification (id, incident_id, kind, channel, recipient, state, sent_at, claim, error)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $1, 'for the operator')`,
      [newId(), incidentId, kind, channel, recipient, state, sentAt],
    )
  }

  it('shows the recipients only to those who may change the settings of the organisation', async () => {
    const id = await open({ openedAt: OPENED })
    await notify(id, { recipient: 'boss@test.example' })
    await notify(id, { channel: 'push', recipient: UNKNOWN_ID })
    const { organisationId } = member
    const recipientsFor = async (permissions: string[]): Promise<unknown[]> => {
      const { apiKey } = await createMember(suite.database.dataSource, { organisationId, permissions })
      const answer = await list({ apiKey })
      const { data } = answer.json as { data: Incident[] }
      return data[0]!.notifications.map(({ recipient }) => recipient)
    }
    expect(await recipientsFor(['webhook:read', 'webhook:manage'])).to.deep.equal([null, null])
    expect(await recipientsFor(['webhook:read', 'organizationSettings:update'])).to.deep.equal([
      'boss@test.example',
      UNKNOWN_ID,
    ])
    expect((await incidents())[0]!.notifications.map(({ recipient }) => recipient)).to.deep.equal([
      'boss@test.example',
      UNKNOWN_ID,
    ])
  })

  it('shows an open incident with its fields and nothing more', async () => {
    const id = await open({ openedAt: OPENED })
    const answer = await list()
    expect(answer.status, answer.text).to.equal(200)
    expect(answer.json).to.deep.equal({
      data: [
        { id, openedAt: OPENED, closedAt: null, exhaustedAt: null, failures: NO_FAILURES, notifications: [] },
      ],
      nextCursor: null,
    })
  })

  it('shows when an incident was exhausted and closed, and its recipients', async () => {
    const id = await open({ openedAt: OPENED, exhaustedAt: EXHAUSTED, closedAt: CLOSED })
    await notify(id, { kind: 2, recipient: 'info@test.example', state: 'sent', sentAt: EXHAUSTED })
    expect(await incidents()).to.deep.equal([
      {
        id,
        openedAt: OPENED,
        closedAt: CLOSED,
        exhaustedAt: EXHAUSTED,
        failures: NO_FAILURES,
        notifications: [
          { kind: 2, channel: 'email', recipient: 'info@test.example', state: 'sent', sentAt: EXHAUSTED },
        ],
      },
    ])
  })

  it('lists notifications by kind, channel and recipient, with each incident its own', async () => {
    const push = newId()
    const wanted: Partial<Notification>[] = [
      { kind: 1, channel: 'email', recipient: 'Zoe@test.example', state: 'sent' },
      { kind: 1, channel: 'email', recipient: 'an@test.example', state: 'sending' },
      { kind: 1, channel: 'push', recipient: push, state: 'failed' },
      { kind: 2, channel: 'email', recipient: 'an@test.example', state: 'pending' },
      { kind: 2, channel: 'push', recipient: push, state: 'unknown' },
    ]
    const closed = await open({ openedAt: OPENED, closedAt: CLOSED })
    const later = await open({ openedAt: CLOSED })
    for (const index of [3, 1, 4, 0, 2]) await notify(closed, wanted[index]!)
    await notify(later, { recipient: 'later@test.example' })
    const [second, first] = await incidents()
    expect(first!.notifications).to.deep.equal(
      wanted.map((notification) => ({ ...notification, sentAt: null })),
    )
    expect(second!.notifications.map(({ recipient }) => recipient)).to.deep.equal(['later@test.example'])
  })

  it('shows times in UTC with milliseconds whatever the time zone of the session', async () => {
    const id = await open({ openedAt: '2026-03-01T10:00:00.123456Z' })
    await notify(id, { state: 'sent', sentAt: '2026-03-29T02:30:00.987654+02:00' })
    const [incident] = await incidents()
    expect(incident!.openedAt).to.equal(OPENED)
    expect(incident!.notifications[0]!.sentAt).to.equal('2026-03-29T00:30:00.987Z')
    const { page } = await suite.database.dataSource.transaction(async (manager) => {
      await manager.query(`SET LOCAL TIME ZONE 'Asia/Kathmandu'`)
      return listIncidents(manager, member.organisationId, webhook.id, { after: null, limit: 1 })
    })
    const [elsewhere] = page
    expect(elsewhere!.openedAt.toISOString()).to.equal(OPENED)
    expect(elsewhere!.notifications[0]!.sentAt!.toISOString()).to.equal('2026-03-29T00:30:00.987Z')
  })

  it('lists them in pages, also where several opened at the same instant', async () => {
    const { dataSource } = suite.database
    await dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, closed_at)
       SELECT uuidv7(), $1, $2, $3::timestamptz + (n / 3) * interval '1 hour' + interval '7 microseconds', now()
         FROM generate_series(0, 24) n`,
      [member.organisationId, webhook.id, OPENED],
    )
    const found: string[] = []
    let query = '?limit=10'
    for (let pages = 1; ; pages++) {
      const { data, nextCursor } = (await list({ query })).json as {
        data: Incident[]
        nextCursor: string | null
      }
      found.push(...data.map(({ id }) => id))
      if (nextCursor === null) {
        expect(pages).to.equal(3)
        break
      }
      query = `?limit=10&cursor=${nextCursor}`
    }
    const wanted = await dataSource.query<{ id: string }[]>(
      `SELECT id FROM incident WHERE webhook_id = $1 ORDER BY opened_at DESC, id DESC`,
      [webhook.id],
    )
    expect(found).to.deep.equal(wanted.map(({ id }) => id))
  })

  it('groups the failed attempts of each by cause, with counts, times and what to do', async () => {
    const { dataSource } = suite.database
    const [first, second] = await Promise.all([1, 2].map(() => publishRow(dataSource, member.organisationId)))
    const failed = (
      rows: typeof first,
      number: number,
      startedAt: string,
      failure: { code: string; statusCode?: number; error: string },
    ) =>
      dataSource.query(
        `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome,
                              failure_code, status_code, error)
         VALUES ($1, $2, $3, 'schedule', 'https://a.example/', $4, 1000, 'failed', $5, $6, $7)`,
        [
          rows![0]!.deliveryId,
          number,
          webhook.id,
          startedAt,
          failure.code,
          failure.statusCode ?? null,
          failure.error,
        ],
      )
    const tls = { code: 'tls_error', error: "The endpoint's certificate is self-signed." }
    const status = { code: 'http_status', statusCode: 503, error: 'The endpoint answered 503.' }
    await open({ openedAt: OPENED, closedAt: '2026-03-01T12:00:00.000Z' })
    await open({ openedAt: '2026-03-01T12:00:02.000Z' })
    // The failure that opens an incident began before it, and may be recorded late.
    await failed(first, 1, '2026-03-01T09:58:30.000Z', tls)
    await failed(second, 1, '2026-03-01T10:30:00.000Z', tls)
    await failed(first, 2, '2026-03-01T11:30:00.000Z', tls)
    await failed(first, 3, '2026-03-01T11:59:58.500Z', status)
    await failed(second, 2, '2026-03-01T12:00:01.000Z', status)
    await failed(second, 3, '2026-03-01T09:00:00.000Z', status)
    const [later, earlier] = await incidents()
    expect(earlier!.failures).to.deep.equal({
      failedAttempts: 4,
      deliveries: 2,
      isCapped: false,
      causes: [
        {
          failureCode: 'tls_error',
          statusCode: null,
          error: tls.error,
          cure: FAILURE_TEXTS.tls_error.cure,
          failedAttempts: 3,
          deliveries: 2,
          firstAt: '2026-03-01T09:58:30.000Z',
          lastAt: '2026-03-01T11:30:00.000Z',
        },
        {
          failureCode: 'http_status',
          statusCode: 503,
          error: status.error,
          cure: FAILURE_TEXTS.http_status.cure,
          failedAttempts: 1,
          deliveries: 1,
          firstAt: '2026-03-01T11:59:58.500Z',
          lastAt: '2026-03-01T11:59:58.500Z',
        },
      ],
    })
    expect(later!.failures).to.deep.include({ failedAttempts: 1, deliveries: 1 })
  })

  it('shows nothing of another webhook or another organisation', async () => {
    const { organisationId } = await createMember(suite.database.dataSource)
    await open({ openedAt: OPENED }, { webhookId: (await createWebhook(member.organisationId)).id })
    // A row that cannot come to be: only the organisation in the query keeps it out.
    await open({ openedAt: OPENED }, { organisationId })
    expect(await incidents()).to.deep.equal([])
  })
})
