import { randomUUID } from 'node:crypto'
import { wordsOf } from '../words.ts'
import type { Adapter, Answer, PublishRequest } from './adapter.ts'

/** Size of the body of a request to publish; the envelope that is sent to webhooks is a little larger. */
const BODY_BYTES = 1_024

const EVENT_KEY = 'customer:created'

/** Each run has an organisation of its own. `BENCH_OPERATOR_KEY`: one of POSTHORN_OPERATOR_KEYS, with all scopes. */
export const adapter: Adapter = {
  name: 'Posthorn',
  idHeader: 'x-webhook-event-id',
  async createCustomer(url, hookUrl) {
    const operatorKey = process.env['BENCH_OPERATOR_KEY'] ?? ''
    const id = `bench_${randomUUID()}`
    const path = `/api/operator/organisations/${id}`
    const asOperator = { 'x-operator-key': operatorKey }
    const organisation = { name: 'Bench', email: 'bench@example.com', supportEmail: null, timeZone: 'UTC' }
    await callPosthorn(`${url}${path}`, 'PUT', asOperator, organisation)
    const member = {
      name: 'Bench',
      email: 'bench@example.com',
      fullAccess: true,
      pushEnabled: false,
      permissions: [],
    }
    await callPosthorn(`${url}${path}/members/bench`, 'PUT', asOperator, member)
    const key = await callPosthorn(`${url}${path}/members/bench/api-keys`, 'POST', asOperator, {
      name: 'bench',
    })
    const customer = { id, apiKey: (key as { key: string }).key }
    const webhook = { url: hookUrl, subscribedEventKeys: [EVENT_KEY], enabled: true }
    await callPosthorn(`${url}/api/orgs/${id}/webhooks`, 'POST', { 'x-api-key': customer.apiKey }, webhook)
    return {
      request: (bodyBytes) => publishRequest(customer, EVENT_KEY, bodyBytes),
      readIds: readDeliveryIds,
      remove: () => callPosthorn(`${url}${path}`, 'DELETE', asOperator),
    }
  },
}

/** A request to publish one event. */
export function publishRequest(
  organisation: { id: string; apiKey: string },
  eventKey: string,
  bodyBytes = BODY_BYTES,
): PublishRequest {
  const bare = JSON.stringify({ event: eventKey, data: { id: 'cus_1', note: '' } })
  return {
    path: `/api/orgs/${organisation.id}/events`,
    headers: { 'x-api-key': organisation.apiKey, 'content-type': 'application/json' },
    body: bare.replace('""', `"${wordsOf(bodyBytes - bare.length)}"`),
  }
}

export function readDeliveryIds({ status, body }: Answer): string[] {
  if (status !== 202) throw new Error(`${status} ${body}`)
  const { deliveries } = JSON.parse(body) as { deliveries: { id: string }[] }
  return deliveries.map(({ id }) => id)
}

/** Throws unless the request is answered with success. */
export async function callPosthorn(
  url: string,
  method: string,
  headers: Record<string, string>,
  body?: object,
): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`)
  return text === '' ? null : JSON.parse(text)
}
