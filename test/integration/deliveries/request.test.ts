import { verify } from '@octokit/webhooks-methods'
import { expect } from 'chai'
import { useApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'

type Request = { method: string; url: string; headers: Record<string, string>; body: string }

describe('GET /webhooks/:id/deliveries/:deliveryId/request', () => {
  const suite = useApi()
  const URL_OF_WEBHOOK = 'https://hooks.customer.com/in?token=secret'

  async function setUp(subscribedEventKeys = ['customer:created']) {
    const { dataSource } = suite.database
    const member = await createMember(dataSource)
    const { organisationId } = member
    const options = { organisationId, url: URL_OF_WEBHOOK, subscribedEventKeys }
    const webhook = await createWebhookRow(dataSource, options)
    const [delivery] = await publishRow(dataSource, organisationId, { room: 1 })
    const path = `/api/orgs/${organisationId}/webhooks/${webhook.id}/deliveries/${delivery!.deliveryId}/request`
    return { member, webhook, delivery: delivery!, path }
  }

  it('gives the request as it is sent, with the signature of its body', async () => {
    const { member, webhook, delivery, path } = await setUp()
    const answer = await suite.api.call('GET', path, member)
    expect(answer.status, answer.text).to.equal(200)
    expect(answer.headers.get('cache-control')).to.equal('no-store')
    const { method, url, headers, body } = answer.json as Request
    expect({ method, url }).to.deep.equal({ method: 'POST', url: URL_OF_WEBHOOK })
    expect(body).to.equal(delivery.claim!.body.toString('utf8'))
    expect(headers).to.include({
      'Content-Type': 'application/json',
      'X-Webhook-Event-ID': delivery.deliveryId,
    })
    expect(await verify(webhook.signingSecret, body, headers['X-Webhook-Signature']!)).to.equal(true)
  })

  it('needs the permissions of the subscription and of the event key', async () => {
    const { member, webhook, path } = await setUp(['customer:created', 'invoice:paid'])
    const { organisationId } = member
    const missingOf = async (permissions: string[]): Promise<unknown> => {
      const { apiKey } = await createMember(suite.database.dataSource, { organisationId, permissions })
      const answer = await suite.api.call('GET', path, { apiKey })
      return (answer.json as { missingPermissions?: string[] }).missingPermissions
    }
    expect(await missingOf(['webhook:manage', 'customer:read'])).to.deep.equal(['invoice:read'])
    expect(await missingOf(['webhook:manage', 'invoice:read'])).to.deep.equal(['customer:read'])
    await suite.database.dataSource.query('UPDATE webhook SET subscribed_event_keys = $2 WHERE id = $1', [
      webhook.id,
      ['invoice:paid'],
    ])
    expect(await missingOf(['webhook:manage', 'invoice:read'])).to.deep.equal(['customer:read'])
    expect(await missingOf(['webhook:manage', 'invoice:read', 'customer:read'])).to.equal(undefined)
  })
})
