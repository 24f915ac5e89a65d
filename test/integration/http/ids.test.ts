import { expect } from 'chai'
import {
  createMember,
  createReplayRow,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { insertRetryJob } from '../../../src/db/queries/retry-jobs.ts'
import { routes } from '../../../src/http/routes/index.ts'
import { newId } from '../../../src/ids.ts'
import { useApi } from '../../helpers/api/api.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { openTransaction } from '../../helpers/database/database.ts'

const WEBHOOKS = '/api/orgs/:orgId/webhooks'

/** Reading routes with an id of ours in their path. */
const READING = routes.filter(
  ({ method, path, access }) =>
    method === 'GET' && access.kind === 'organisation' && /:(id|deliveryId|eventId|jobId)\b/.test(path),
)

describe('ids in requests', () => {
  const suite = useApi()
  let member: TestMember
  let ids: Record<string, string>

  beforeEach(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource)
    const { organisationId, memberId } = member
    const url = 'https://hooks.customer.com/'
    const webhook = await createWebhookRow(dataSource, { organisationId, url })
    const [delivery] = await publishRow(dataSource, organisationId)
    await setRow(dataSource, delivery!.deliveryId, { state: 'failed' })
    const [row] = await dataSource.query<{ event_id: string }[]>(
      'SELECT event_id FROM delivery WHERE id = $1',
      [delivery!.deliveryId],
    )
    const jobId = newId()
    await dataSource.transaction((manager) =>
      insertRetryJob(manager, {
        id: jobId,
        organisationId,
        webhookId: null,
        mode: 'failed',
        requestedBy: memberId,
      }),
    )
    ids = {
      orgId: organisationId,
      id: webhook.id,
      deliveryId: delivery!.deliveryId,
      eventId: row!.event_id,
      jobId,
      replayId: await createReplayRow(dataSource, {
        organisationId,
        webhookId: webhook.id,
        requestedBy: memberId,
      }),
    }
  })

  const upper = (name: string): string => ids[name]!.toUpperCase()

  /** The path of a replay names its own job. */
  const named = (path: string): string => path.replace('/replays/:jobId', '/replays/:replayId')

  /** Ids of ours are written in upper case, those of the platform as they are. */
  function call(method: string, path: string, body?: object) {
    const filled = named(path).replaceAll(/:(\w+)/g, (_, name: string) =>
      name === 'orgId' ? ids[name]! : upper(name),
    )
    return suite.api.call(method, filled, { apiKey: member.apiKey, ...(body === undefined ? {} : { body }) })
  }

  const audited = async (action: string): Promise<{ webhook_id: string; details: object }[]> =>
    suite.database.dataSource.query(
      'SELECT webhook_id, details FROM audit_entry WHERE organisation_id = $1 AND action = $2',
      [member.organisationId, action],
    )

  it('in the path of a reading route may be in upper case, and lead to the same answer', async () => {
    for (const { path } of READING) {
      const upperCase = await call('GET', path)
      expect(upperCase.status, `${path}: ${upperCase.text}`).to.equal(200)
      const lowerCase = named(path).replaceAll(/:(\w+)/g, (_, name: string) => ids[name]!)
      const get = () => suite.api.call('GET', lowerCase, { apiKey: member.apiKey })
      // Once more: an hour of the activity may have begun in between.
      if ((await get()).text !== upperCase.text)
        expect((await call('GET', path)).text).to.equal((await get()).text)
    }
  })

  it('in the paths of commands may be in upper case, and are recorded in lower case', async () => {
    for (const [method, path, body] of [
      ['POST', `${WEBHOOKS}/:id/deliveries/:deliveryId/retry`],
      ['PATCH', `${WEBHOOKS}/:id`, { description: 'Invoices' }],
      ['POST', `${WEBHOOKS}/:id/test`],
      ['POST', `${WEBHOOKS}/:id/discard-failed`],
      ['DELETE', `${WEBHOOKS}/:id`],
    ] as const) {
      const { status, text } = await call(method, path, body)
      expect(status, `${method} ${path}: ${text}`).to.be.within(200, 204)
      expect(text).not.to.include(upper('id'))
    }
    expect(await audited('webhook.updated')).to.have.nested.property('[0].webhook_id', ids['id'])
  })

  it('in upper case wait for the same lock of the webhook', async () => {
    const { dataSource } = suite.database
    const holder = await openTransaction(dataSource)
    try {
      await holder.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [ids['id']])
      const { status, json } = await call('PATCH', `${WEBHOOKS}/:id`, { enabled: false })
      expect(status).to.equal(503)
      expect(json).to.include({ code: 'unavailable' })
    } finally {
      await holder.rollbackTransaction()
      await holder.release()
    }
  })

  it('in bodies may be in upper case', async () => {
    const body = { mode: 'failed', id: upper('id'), deliveryIds: [upper('deliveryId'), ids['deliveryId']] }
    const job = await call('POST', `${WEBHOOKS}/retry-deliveries`, body)
    expect(job.status, job.text).to.equal(202)
    expect(job.json).to.include({ webhookId: ids['id'], total: 1 })
    expect((await audited('deliveries.retried'))[0]!.details).to.deep.include({
      deliveryIds: [ids['deliveryId']],
    })
  })

  it('in queries may be in upper case', async () => {
    const found = async (path: string): Promise<object[]> => {
      const { status, text, json } = await call('GET', path)
      expect(status, text).to.equal(200)
      return (json as { data: object[] }).data
    }
    expect(await found(`${WEBHOOKS}/:id/deliveries?search=${upper('deliveryId')}`)).to.have.lengthOf(1)
    expect(await found(`${WEBHOOKS}/:id/deliveries?search=${upper('eventId')}`)).to.have.lengthOf(1)
    expect(await found(`/api/orgs/:orgId/events?search=${upper('eventId')}`)).to.have.lengthOf(1)
    await call('PATCH', `${WEBHOOKS}/:id`, { description: 'Invoices' })
    expect(await found(`/api/orgs/:orgId/audit?webhookId=${upper('id')}`)).to.have.lengthOf(1)
  })

  it('of organisations are exact', async () => {
    const path = `/api/orgs/${ids['orgId']!.toUpperCase()}/webhooks`
    expect((await suite.api.call('GET', path, { apiKey: member.apiKey })).status).to.equal(404)
  })
})
