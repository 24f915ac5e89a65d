import { expect } from 'chai'
import { newId } from '../../../src/ids.ts'
import { createTestApi, type CallOptions, type TestApi } from '../../helpers/api/api.ts'
import { asOperator } from '../../helpers/api/operator.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'

const REASON = 'It floods us. Write to support@example.com.'

type Webhook = {
  id: string
  organisation: { id: string }
  enabled: boolean
  status: string
  since: string
  cause: string | null
  counts: Record<string, number>
  operatorHold: { since: string; reason: string } | null
  temporalUrl: string | null
}

describe("the operator's view", () => {
  const database = useDatabase()
  let api: TestApi
  let member: TestMember
  let webhookId: string

  before(async () => {
    const temporalUi = { url: 'https://temporal.example.com', namespace: 'default' }
    api = await createTestApi(database.dataSource, { temporalUi })
  })
  after(() => api.close())
  beforeEach(async () => {
    member = await createMember(database.dataSource)
    webhookId = await createWebhook()
  })

  const query = <Row>(sql: string, parameters: unknown[] = []) =>
    database.dataSource.query<Row[]>(sql, parameters)
  async function createWebhook({ enabled = true } = {}): Promise<string> {
    const url = 'https://hooks.customer.com/in?token=secret'
    return (await createWebhookRow(database.dataSource, { ...member, url, enabled })).id
  }
  async function call<Json>(
    method: string,
    path: string,
    options: CallOptions,
    expected = 200,
  ): Promise<Json> {
    const { status, json, text } = await api.call(method, path, options)
    expect(status, text).to.equal(expected)
    return json as Json
  }
  const act = (action: 'disable' | 'enable', id = webhookId, body: object = { reason: REASON }) =>
    call<Webhook>(
      'POST',
      `/api/operator/organisations/${member.organisationId}/webhooks/${id}/${action}`,
      asOperator('manager', action === 'disable' ? { body } : {}),
    )
  const ofMember = (path = `/webhooks/${webhookId}`) => `/api/orgs/${member.organisationId}${path}`
  const asMember = (body?: object): CallOptions => ({
    apiKey: member.apiKey,
    ...(body === undefined ? {} : { body }),
  })
  const list = (state: string, more = '&limit=100') =>
    call<{ data: Webhook[]; nextCursor: string | null }>(
      'GET',
      `/api/operator/webhooks?state=${state}${more}`,
      asOperator('observer'),
    )
  const inList = async (state: string, id = webhookId) =>
    (await list(state)).data.find((row) => row.id === id)

  /** Deliveries of the webhook, each in one of the states. */
  async function deliveriesIn(...rows: Parameters<typeof setRow>[2][]): Promise<string[]> {
    const ids: string[] = []
    for (const row of rows) {
      const [delivery] = await publishRow(database.dataSource, member.organisationId)
      await setRow(database.dataSource, delivery!.deliveryId, row)
      ids.push(delivery!.deliveryId)
    }
    return ids
  }
  const statesOf = async (ids: string[]) => {
    const found = await query<{ id: string; state: string }>(
      'SELECT id, state FROM delivery WHERE id = ANY($1)',
      [ids],
    )
    return ids.map((id) => found.find((row) => row.id === id)?.state)
  }
  /** Opens an incident, with failed attempts of which so many are followed by a success. */
  async function fail(id = webhookId, { succeeded = 0 } = {}): Promise<void> {
    const [delivery] = await deliveriesIn({ state: 'waiting', attempts: 1 })
    await query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at) VALUES ($1, $2, $3, now() - interval '1 hour')`,
      [newId(), member.organisationId, id],
    )
    await query(
      `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, status_code, error, failure_code)
       SELECT $1, 100 + n, $2, 'schedule', 'https://x.example/', now() - n * interval '1 minute', 80,
              CASE WHEN n <= $3 THEN 'succeeded' ELSE 'failed' END, CASE WHEN n <= $3 THEN 200 ELSE 503 END,
              CASE WHEN n > $3 THEN 'The endpoint answered 503.' END, CASE WHEN n > $3 THEN 'http_status' END
         FROM generate_series(1, 5) n`,
      [delivery, id, succeeded],
    )
  }

  describe('a hold', () => {
    it('stops what waits and leaves an attempt under way, as a switch-off does, and its end resumes what was never attempted', async () => {
      const ids = await deliveriesIn(
        { state: 'pending' },
        { state: 'waiting', attempts: 2 },
        { state: 'in_progress', attempts: 0 },
        { state: 'failed', attempts: 10 },
      )
      expect(await act('disable')).to.deep.include({ id: webhookId, enabled: false })
      expect(await statesOf(ids)).to.deep.equal(['stopped', 'stopped', 'in_progress', 'failed'])
      expect(await act('enable')).to.deep.equal({ id: webhookId, enabled: true, operatorHold: null })
      expect(await statesOf(ids)).to.deep.equal(['pending', 'stopped', 'in_progress', 'failed'])
    })

    it('shows its organisation since when and why, in the webhook, its overview and the audit trail', async () => {
      const { operatorHold } = await act('disable')
      expect(operatorHold).to.have.property('reason', REASON)
      expect(await call('GET', ofMember(), asMember())).to.deep.include({ enabled: false, operatorHold })
      const { data } = await call<{ data: object[] }>('GET', ofMember('/webhooks/overview'), asMember())
      expect(data[0]).to.deep.include({ operatorHold })
      await act('enable')
      const audit = await call<{ data: { action: string; details: object; memberId: null }[] }>(
        'GET',
        ofMember(`/audit?webhookId=${webhookId}`),
        asMember(),
      )
      expect(audit.data.map(({ action, details, memberId }) => [action, details, memberId])).to.deep.equal([
        ['webhook.released', { actor: 'operator:manager', enabled: true }, null],
        ['webhook.held', { actor: 'operator:manager', reason: REASON }, null],
      ])
    })

    it('is neither made nor ended under another organisation, nor of a webhook that is none', async () => {
      const { organisationId } = await createMember(database.dataSource)
      for (const place of [`${organisationId}/webhooks/${webhookId}`, `${member.organisationId}/webhooks/1`])
        for (const [action, options] of [
          ['disable', { body: { reason: REASON } }],
          ['enable', {}],
        ] as const) {
          const path = `/api/operator/organisations/${place}/${action}`
          expect((await api.call('POST', path, asOperator('manager', options))).status, path).to.equal(404)
        }
    })

    it('keeps its organisation from enabling the webhook, and from nothing else', async () => {
      await act('disable')
      const refused = await call<{ code: string; detail: string }>(
        'PATCH',
        ofMember(),
        asMember({ enabled: true }),
        409,
      )
      expect(refused).to.include({
        code: 'webhook_held',
        detail: `The operator holds the webhook: ${REASON}`,
      })
      expect(await call<object>('POST', `${ofMember()}/test`, asMember(), 409)).to.include({
        code: 'webhook_held',
      })
      const shown = await call<object>('GET', ofMember(), asMember())
      expect(await call('PATCH', ofMember(), asMember(shown))).to.deep.equal(shown)
      expect(await call('PATCH', ofMember(), asMember({ description: 'New' }))).to.include({
        description: 'New',
        enabled: false,
      })
      const { errors } = await call<{ errors: object[] }>(
        'PATCH',
        ofMember(),
        asMember({ operatorHold: null }),
        422,
      )
      expect(errors[0]).to.include({ pointer: '/operatorHold', code: 'read_only' })
      await act('enable')
      await call('PATCH', ofMember(), asMember({ enabled: false }))
      await call('PATCH', ofMember(), asMember({ enabled: true }))
      await call('DELETE', ofMember(), asMember(), 204)
    })

    it('leaves a webhook that its organisation disabled as it was, once it ends', async () => {
      const disabled = await createWebhook({ enabled: false })
      await act('disable', disabled)
      expect(await act('enable', disabled)).to.deep.include({ enabled: false, operatorHold: null })
      expect(await act('enable', disabled)).to.deep.include({ enabled: false, operatorHold: null })
    })

    it('is the same hold when it is repeated, with the latest reason; the audit trail has each reason once', async () => {
      const first = await act('disable')
      for (const reason of ['Another.', 'Another.']) await act('disable', webhookId, { reason })
      const shown = await call<Webhook>('GET', ofMember(), asMember())
      expect(shown.operatorHold).to.deep.equal({ since: first.operatorHold!.since, reason: 'Another.' })
      for (let time = 0; time < 2; time++) await act('enable')
      const found = await query<{ action: string }>(
        'SELECT action FROM audit_entry WHERE webhook_id = $1 ORDER BY id',
        [webhookId],
      )
      expect(found.map(({ action }) => action)).to.deep.equal([
        'webhook.held',
        'webhook.held',
        'webhook.released',
      ])
      expect(await call('GET', ofMember(), asMember())).to.include({ enabled: true })
    })
  })

  describe('the list of webhooks', () => {
    it('has failing and degraded ones by their status, with since when and why', async () => {
      await fail()
      const row = await inList('failing')
      const degraded = await createWebhook()
      await fail(degraded, { succeeded: 1 })
      expect(row).to.deep.include({ status: 'failing', cause: 'The endpoint answered 503.', enabled: true })
      expect(Date.now() - Date.parse(row!.since)).to.be.within(3_500_000, 3_700_000)
      expect(row!.counts).to.include({ waitingForRetry: 1, permanentlyFailed: 0 })
      expect(row!.organisation.id).to.equal(member.organisationId)
      expect(await inList('failing', degraded)).to.equal(undefined)
      expect(await inList('degraded', degraded)).to.include({ status: 'degraded' })
      expect(await inList('degraded')).to.equal(undefined)
    })

    it('has those whose workflows are paused in Temporal, and those that are disabled or held', async () => {
      const ids = await deliveriesIn({ state: 'waiting', attempts: 1 }, { state: 'waiting', attempts: 1 })
      await query(`UPDATE delivery SET paused_since = '2026-05-04T09:30:00Z' WHERE id = ANY($1)`, [ids])
      const row = await inList('paused')
      expect(row).to.deep.include({ since: '2026-05-04T09:30:00.000Z' })
      expect(row!.counts).to.include({ paused: 2 })
      expect(await inList('disabled')).to.equal(undefined)
      const { operatorHold } = await act('disable')
      expect(await inList('paused')).to.equal(undefined)
      const held = await inList('disabled')
      expect(held).to.deep.include({ operatorHold, cause: REASON, since: operatorHold!.since })
      await act('enable')
      await call('PATCH', ofMember(), asMember({ enabled: false }))
      expect(await inList('disabled')).to.deep.include({ operatorHold: null, cause: null })
    })

    it('links to the workflows of a webhook, and shows neither payload, secret nor the query of its URL', async () => {
      await fail()
      const answer = await api.call(
        'GET',
        '/api/operator/webhooks?state=failing&limit=100',
        asOperator('observer'),
      )
      const row = (answer.json as { data: Webhook[] }).data.find(({ id }) => id === webhookId)!
      const { origin, pathname, searchParams } = new URL(row.temporalUrl!)
      expect(origin + pathname).to.equal('https://temporal.example.com/namespaces/default/workflows')
      expect(searchParams.get('query')).to.equal(`WebhookId = '${webhookId}'`)
      expect(answer.text).not.to.match(/token=|cus_1|[0-9a-f]{64}/)
    })

    for (const state of ['failing', 'disabled', 'paused', 'degraded'])
      it(`goes from page to page, each ${state} webhook once, newest first`, async () => {
        const ids: string[] = []
        for (let index = 0; index < 3; index++)
          ids.push(await createWebhook({ enabled: state !== 'disabled' }))
        for (const id of ids) {
          if (state === 'failing' || state === 'degraded')
            await fail(id, { succeeded: state === 'failing' ? 0 : 1 })
        }
        if (state === 'paused') {
          await deliveriesIn({ state: 'waiting', attempts: 1 })
          await query('UPDATE delivery SET paused_since = now() WHERE webhook_id = ANY($1)', [ids])
        }
        const seen: string[] = []
        let cursor: string | null = ''
        while (cursor !== null) {
          const page = await list(state, `&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
          expect(page.data.length).to.be.at.most(1)
          seen.push(...page.data.map(({ id }) => id))
          cursor = page.nextCursor
        }
        expect(seen.filter((id) => ids.includes(id))).to.deep.equal(ids.toReversed())
        expect(new Set(seen).size).to.equal(seen.length)
      })
  })

  describe('the overview', () => {
    type Overview = {
      organisations: number
      webhooks: Record<string, number | boolean>
      backlog: Record<string, number> | null
    }
    const overview = (on = api) =>
      on.call('GET', '/api/operator/overview', asOperator('observer')).then(({ json }) => json as Overview)

    it('counts organisations, webhooks in need of attention, and the backlog of all', async () => {
      const before = await overview()
      const other = await createMember(database.dataSource)
      await fail()
      await deliveriesIn({ state: 'pending' })
      await createWebhook({ enabled: false })
      const held = await createWebhook()
      await act('disable', held)
      const after = await overview()
      expect(other.organisationId).not.to.equal(member.organisationId)
      expect(after.organisations - before.organisations).to.equal(1)
      const grown = (name: string) => Number(after.webhooks[name]) - Number(before.webhooks[name])
      expect(['failing', 'disabled', 'held', 'paused'].map(grown)).to.deep.equal([1, 2, 1, 0])
      expect(after.webhooks['isCapped']).to.equal(false)
      expect(after.backlog!['openIncidents']! - before.backlog!['openIncidents']!).to.equal(1)
      expect(after.backlog!['waitingForRetry']! - before.backlog!['waitingForRetry']!).to.be.at.least(1)
      expect(after.backlog!['waitingForFirstAttempt']).to.be.at.least(1)
      expect(after.backlog!['oldestWaitingForFirstAttemptMs']).to.be.above(0)
    })

    it('goes without the backlog where it cannot be counted in time', async () => {
      const slow = await createTestApi(database.dataSource, { readBacklog: () => Promise.resolve(null) })
      expect(await overview(slow)).to.have.property('backlog', null)
      await slow.close()
    })
  })
})
