import { expect } from 'chai'
import { purge } from '../../../src/retention/purge.ts'
import { createMember, publishRow, type TestMember } from '../../helpers/database/factories.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { useApi } from '../../helpers/api/api.ts'

type Entry = {
  id: string
  at: string
  memberId: string | null
  apiKeyId: string | null
  action: string
  webhookId: string | null
  deliveryId: string | null
  details: Record<string, unknown>
  address: string | null
  requestId: string | null
}

describe('the audit trail', () => {
  const suite = useApi()
  let member: TestMember
  let webhookId: string

  const call = (method: string, path: string, body?: unknown) =>
    suite.api.call(method, `/api/orgs/${member.organisationId}${path}`, {
      apiKey: member.apiKey,
      ...(body === undefined ? {} : { body }),
      headers: { 'x-request-id': 'req-1' },
    })
  const trail = async (query = ''): Promise<Entry[]> => {
    const answered = await call('GET', `/audit${query}`)
    expect(answered.status, answered.text).to.equal(200)
    return (answered.json as { data: Entry[] }).data
  }
  const create = async (): Promise<string> => {
    const created = await call('POST', '/webhooks', {
      url: 'https://hooks.customer.com/in?token=canary-query',
      subscribedEventKeys: ['*'],
      enabled: true,
    })
    expect(created.status, created.text).to.equal(201)
    return (created.json as { id: string }).id
  }

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
    webhookId = await create()
  })

  it('records who did what, when and from where', async () => {
    const [entry] = await trail()
    expect(entry).to.have.all.keys(
      'id',
      'at',
      'memberId',
      'apiKeyId',
      'action',
      'webhookId',
      'deliveryId',
      'details',
      'address',
      'requestId',
    )
    expect(entry).to.deep.include({
      memberId: member.memberId,
      action: 'webhook.created',
      webhookId,
      deliveryId: null,
      address: '127.0.0.1',
      requestId: 'req-1',
      details: {
        url: 'https://hooks.customer.com/in?…',
        description: '',
        subscribedEventKeys: ['*'],
        enabled: true,
      },
    })
    expect(entry!.apiKeyId).to.match(/^[0-9a-f-]{36}$/)
    expect(Date.now() - Date.parse(entry!.at)).to.be.within(-1_000, 10_000)
  })

  it('contains every management action and every display of a secret, newest first', async () => {
    const [delivery] = await publishRow(suite.database.dataSource, member.organisationId)
    const one = `/webhooks/${webhookId}/deliveries/${delivery!.deliveryId}`
    await setRow(suite.database.dataSource, delivery!.deliveryId, { state: 'failed' })
    for (const [method, path, body] of [
      ['GET', `/webhooks/${webhookId}/signing-secret`],
      ['GET', `${one}/request`],
      ['POST', `${one}/retry`],
      ['POST', `${one}/discard`],
      ['POST', `/webhooks/${webhookId}/discard-failed`],
      ['POST', '/webhooks/retry-deliveries', { mode: 'failed', id: webhookId }],
      ['POST', `/webhooks/${webhookId}/test`],
      ['PATCH', `/webhooks/${webhookId}`, { enabled: false }],
      ['DELETE', `/webhooks/${webhookId}`],
    ] as const) {
      const answered = await call(method, path, body)
      expect(answered.status, `${method} ${path}: ${answered.text}`).to.be.within(200, 204)
    }
    expect((await trail()).map(({ action }) => action)).to.deep.equal([
      'webhook.deleted',
      'webhook.updated',
      'webhook.tested',
      'deliveries.retried',
      'deliveries.discarded',
      'delivery.discarded',
      'delivery.retried',
      'delivery.request_read',
      'webhook.secret_read',
      'webhook.created',
    ])
  })

  it('records what a change changed, without secrets, queries and paths', async () => {
    await call('PATCH', `/webhooks/${webhookId}`, { url: 'https://hooks.customer.com/in?token=other' })
    await call('PATCH', `/webhooks/${webhookId}`, { url: 'https://hooks.customer.com/in/T0canary/B0canary' })
    const { signingSecret } = (await call('GET', `/webhooks/${webhookId}/signing-secret`)).json as {
      signingSecret: string
    }
    const entries = await trail()
    expect(entries.slice(1, 3).map(({ details }) => details)).to.deep.equal([
      {
        from: {
          url: 'https://hooks.customer.com/in?…',
          description: '',
          subscribedEventKeys: ['*'],
          enabled: true,
        },
        to: {
          url: 'https://hooks.customer.com/in/T0…',
          description: '',
          subscribedEventKeys: ['*'],
          enabled: true,
        },
        urlChanged: true,
      },
      {
        from: {
          url: 'https://hooks.customer.com/in?…',
          description: '',
          subscribedEventKeys: ['*'],
          enabled: true,
        },
        to: {
          url: 'https://hooks.customer.com/in?…',
          description: '',
          subscribedEventKeys: ['*'],
          enabled: true,
        },
        urlChanged: true,
      },
    ])
    const text = JSON.stringify(entries)
    for (const secret of [signingSecret, 'canary', 'token=other', member.apiKey])
      expect(text).not.to.include(secret)
  })

  it('records nothing that was refused or impossible', async () => {
    await call('POST', `/webhooks/${webhookId}/deliveries/${webhookId}/retry`)
    await call('PATCH', `/webhooks/${webhookId}`, { url: 'http://127.0.0.1/' })
    await call('DELETE', `/webhooks/${member.organisationId}`)
    expect(await trail()).to.have.length(1)
  })

  it('records a repeated request once', async () => {
    const body = { url: 'https://hooks.customer.com/', subscribedEventKeys: ['*'], enabled: true }
    const headers = { 'idempotency-key': 'once' }
    for (let repeat = 0; repeat < 3; repeat++)
      await suite.api.call('POST', `/api/orgs/${member.organisationId}/webhooks`, {
        apiKey: member.apiKey,
        body,
        headers,
      })
    const actions = (await trail()).map(({ action }) => action)
    expect(actions.filter((action) => action === 'webhook.created')).to.have.length(2)
    // The repeats show the secret again.
    expect(actions.filter((action) => action === 'webhook.secret_read')).to.have.length(2)
  })

  it('is read page by page, and by webhook', async () => {
    const other = await create()
    for (let times = 0; times < 3; times++) await call('GET', `/webhooks/${webhookId}/signing-secret`)
    const first = await call('GET', '/audit?limit=2')
    const { data, nextCursor } = first.json as { data: Entry[]; nextCursor: string }
    expect(data).to.have.length(2)
    const rest = (await call('GET', `/audit?limit=100&cursor=${nextCursor}`)).json as {
      data: Entry[]
      nextCursor: null
    }
    expect([...data, ...rest.data]).to.deep.equal(await trail())
    expect(rest.nextCursor).to.equal(null)
    expect((await trail(`?webhookId=${other}`)).map(({ action }) => action)).to.deep.equal([
      'webhook.created',
    ])
    expect((await call('GET', '/audit?cursor=ZDE6eA')).status).to.equal(400)
  })

  it('is searched 5,000 entries at a time, and says how far back', async () => {
    await suite.database.dataSource.query(
      `INSERT INTO audit_entry (id, organisation_id, action, details)
       SELECT uuidv7(interval '1 hour'), $1, 'session.opened', '{}' FROM generate_series(1, 5000)`,
      [member.organisationId],
    )
    const path = '/audit?action=webhook.created'
    const { data, nextCursor, searchedUntil } = (await call('GET', path)).json as Record<string, unknown>
    expect(data).to.deep.equal([])
    expect(searchedUntil).to.match(/Z$/)
    const rest = (await call('GET', `${path}&cursor=${String(nextCursor)}`)).json as { data: Entry[] }
    expect(rest.data.map((entry) => entry.webhookId)).to.deep.equal([webhookId])
    expect(rest).to.include({ nextCursor: null, searchedUntil: null })
  })

  it('cannot be changed or emptied, not even in the database; retention deletes old entries', async () => {
    const { dataSource } = suite.database
    for (const statement of [
      `UPDATE audit_entry SET action = 'webhook.tested'`,
      'DELETE FROM audit_entry',
      'TRUNCATE audit_entry',
    ]) {
      const refused = await dataSource.query(statement).then(
        () => 'done',
        (error: unknown) => (error as Error).message,
      )
      expect(refused, statement).to.equal('the audit trail is append-only')
    }
    await dataSource.query(
      `INSERT INTO audit_entry (id, organisation_id, at, action, details)
       VALUES (uuidv7(), $1, now() - interval '400 days', 'webhook.created', '{}')`,
      [member.organisationId],
    )
    const tell = { incidentWorkflows: { signal: () => Promise.resolve() } }
    const limits = { completedDays: 30, failedDays: 90, auditDays: 365 }
    const purged = await purge(
      { dataSource, logger: silentLogger, ...tell },
      limits,
      new AbortController().signal,
    )
    expect(purged).to.include({ auditEntries: 1 })
    expect(await trail()).to.have.length(1)
  })
})
