import { expect } from 'chai'
import { useApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'

const url = 'https://hooks.example.com/services/T024BE7LD/B01?token=secret'

type Webhook = Record<string, unknown> & { id: string; url: string; updatedAt: string }

describe('PATCH of a webhook with what GET gave', () => {
  const suite = useApi()
  let full: TestMember
  let path: string

  beforeEach(async () => {
    const { dataSource } = suite.database
    full = await createMember(dataSource)
    const { organisationId } = full
    const subscribedEventKeys = ['customer:created', 'invoice:paid']
    const { id } = await createWebhookRow(dataSource, { organisationId, url, subscribedEventKeys })
    path = `/api/orgs/${organisationId}/webhooks/${id}`
  })

  const get = async ({ apiKey } = full): Promise<Webhook> =>
    (await suite.api.call('GET', path, { apiKey })).json as Webhook

  const patch = (body: object, { apiKey } = full) => suite.api.call('PATCH', path, { apiKey, body })

  /** Returns the row as it is stored, to the microsecond, and the number of entries in the audit trail. */
  async function stored(): Promise<unknown> {
    return suite.database.dataSource.query(
      `SELECT w::text, (SELECT count(*) FROM audit_entry a WHERE a.webhook_id = w.id) AS entries
         FROM webhook w WHERE organisation_id = $1`,
      [full.organisationId],
    )
  }

  it('changes nothing with any part of it, and records nothing', async () => {
    const shown = await get()
    const before = await stored()
    const parts = [{}, shown, ...Object.entries(shown).map(([name, value]) => ({ [name]: value }))]
    for (const body of parts) {
      const { status, text, json } = await patch(body)
      expect(status, `${JSON.stringify(body)} ${text}`).to.equal(200)
      expect(json).to.deep.equal(shown)
    }
    expect(await stored()).to.deep.equal(before)
  })

  it('changes nothing for a member who sees a shortened URL', async () => {
    const { organisationId } = full
    const permissions = ['webhook:read', 'webhook:manage']
    const manager = await createMember(suite.database.dataSource, { organisationId, permissions })
    const before = await stored()
    const shown = await get(manager)
    expect(shown.url).to.equal('https://hooks.example.com/services/T0…')
    expect((await patch(shown, manager)).json).to.deep.equal(shown)
    expect(await stored()).to.deep.equal(before)
    expect((await patch({ ...shown, enabled: false }, manager)).json).to.include({ enabled: false })
    expect((await get()).url).to.equal(url)
  })

  it('changes nothing where event keys are not in the catalogue any more, or the URL is not allowed now', async () => {
    await suite.database.dataSource.query(
      `UPDATE webhook SET subscribed_event_keys = '{invoice:paid,invoice:eaten}', url = 'http://old.example.com/'
        WHERE organisation_id = $1`,
      [full.organisationId],
    )
    const shown = await get()
    expect((await patch(shown)).json).to.deep.equal(shown)
    const { status, json } = await patch({ ...shown, enabled: false })
    expect(status).to.equal(200)
    expect(json).to.include({ enabled: false, url: 'http://old.example.com/' })
  })

  it('changes what differs, and only that', async () => {
    const shown = await get()
    const changed = (await patch({ ...shown, description: 'Invoices' })).json as Webhook
    const { updatedAt } = changed
    expect(changed).to.deep.equal({ ...shown, description: 'Invoices', updatedAt })
    expect(updatedAt > shown.updatedAt, 'later').to.equal(true)
  })

  it('refuses another value of a read-only field, naming each with what else is wrong', async () => {
    const before = await stored()
    const { status, json } = await patch({
      ...(await get()),
      id: '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c',
      operatorHold: '2026-05-04T08:00:00.000Z',
      createdAt: '2026-05-04T08:00:00.000Z',
      updatedAt: '2026-05-04T08:00:00.000Z',
      url: 'ftp://receiver.example.com/',
      enabled: null,
      signingSecret: 'x',
    })
    expect(status).to.equal(422)
    const { errors } = json as { errors: { pointer: string; code: string; detail: string }[] }
    expect(errors.map(({ pointer, code }) => `${pointer} ${code}`)).to.have.members([
      '/id read_only',
      '/operatorHold read_only',
      '/createdAt read_only',
      '/updatedAt read_only',
      '/url scheme_not_allowed',
      '/enabled wrong_type',
      '/signingSecret unknown_field',
    ])
    expect(errors.find(({ pointer }) => pointer === '/id')!.detail).to.match(/cannot be changed/)
    expect(await stored()).to.deep.equal(before)
  })
})
