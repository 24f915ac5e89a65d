import { expect } from 'chai'
import type { WebhookRow } from '../../../src/db/queries/webhooks.ts'
import { type ApiResponse, useApi } from '../api/api.ts'
import { createMember, createWebhookRow, publishRow, type TestMember } from '../database/factories.ts'

type Delivery = { id: string; state: string; eventKey: string; createdAt: string; attemptCount: number }

/** A page of deliveries as the API shows it. */
export type DeliveryPage = { data: Delivery[]; nextCursor: string | null }

/** For each test a member and a webhook of every event, and calls of the list of its deliveries. */
export function useDeliveryList() {
  const suite = useApi()
  const made = {} as { member: TestMember; webhook: WebhookRow }

  beforeEach(async () => {
    const member = await createMember(suite.database.dataSource)
    const { organisationId } = member
    const url = 'https://receiver.example.com/'
    Object.assign(made, {
      member,
      webhook: await createWebhookRow(suite.database.dataSource, { organisationId, url }),
    })
  })

  const list = (query = '', options: { apiKey?: string; id?: string } = {}): Promise<ApiResponse> => {
    const { member, webhook } = made
    const path = `/api/orgs/${member.organisationId}/webhooks/${options.id ?? webhook.id}/deliveries`
    return suite.api.call('GET', `${path}${query}`, { apiKey: options.apiKey ?? member.apiKey })
  }

  async function page(query = ''): Promise<DeliveryPage> {
    const answer = await list(query)
    expect(answer.status, answer.text).to.equal(200)
    return answer.json as DeliveryPage
  }

  async function publish(eventKey?: string) {
    const options = eventKey === undefined ? {} : { eventKey }
    const deliveries = await publishRow(suite.database.dataSource, made.member.organisationId, options)
    return deliveries.find(({ webhookId }) => webhookId === made.webhook.id)!
  }

  async function publishMany(count: number): Promise<string[]> {
    const ids: string[] = []
    for (let index = 0; index < count; index++) ids.push((await publish()).deliveryId)
    return ids
  }

  const ids = ({ data }: DeliveryPage): string[] => data.map(({ id }) => id)

  return { suite, made, list, page, publish, publishMany, ids }
}
