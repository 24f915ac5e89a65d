import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { asOperator } from '../api/operator.ts'
import { createMember, createWebhookRow } from '../database/factories.ts'
import { createReceiver, type Answer, type Receiver } from '../receivers/receiver.ts'
import type { PosthornProcess } from './posthorn.ts'

/** An organisation of its own with one webhook, used over the API alone. */
export type WebhookOwner = {
  organisationId: string
  webhookId: string
  receiver: Receiver
  /** Sets how the receiver answers from now on. */
  answerWith(answer: Answer): void
  /** Publishes one event, and returns the id of its delivery. */
  publish(): Promise<string>
  /** Changes the webhook. */
  change(changes: { enabled?: boolean; subscribedEventKeys?: string[] }): Promise<void>
  /** Puts the operator's hold on the webhook, or ends it. */
  hold(isHeld: boolean): Promise<void>
  /** Requests a retry of one delivery. */
  retry(deliveryId: string): Promise<void>
  /** Requests a retry job over the webhook. */
  retryAll(mode: 'stopped'): Promise<void>
  /** Reads one delivery of the webhook. */
  delivery(deliveryId: string): Promise<ReadDelivery>
  /** Returns how many incidents of the webhook are open. */
  openIncidents(): Promise<number>
  close(): Promise<void>
}

/** What tests read of a delivery in an answer of the API. */
type ReadDelivery = {
  state: string
  attemptCount: number
  nextAttemptAt: string | null
  attempts: { number: number; outcome: string; failureCode: string | null }[]
}

/** Creates the organisation, its webhook for every event key, and the receiver of that webhook. */
export async function createWebhookOwner(
  dataSource: DataSource,
  posthorn: Pick<PosthornProcess, 'call'>,
  first: Answer = () => 200,
): Promise<WebhookOwner> {
  let answer = first
  const receiver = await createReceiver({ answer: (...args) => answer(...args) })
  const { organisationId, apiKey } = await createMember(dataSource)
  const { id: webhookId } = await createWebhookRow(dataSource, { organisationId, url: receiver.url })
  /** Calls a route below `/api/orgs/:orgId`, and returns what it answers with the `expected` status. */
  async function call<T>(expected: number, method: string, path: string, body?: object): Promise<T> {
    const options = body === undefined ? { apiKey } : { apiKey, body }
    const { status, text, json } = await posthorn.call(method, `/api/orgs/${organisationId}${path}`, options)
    expect(status, text).to.equal(expected)
    return json as T
  }
  const webhook = `/webhooks/${webhookId}`
  return {
    organisationId,
    webhookId,
    receiver,
    answerWith(next) {
      answer = next
    },
    async publish() {
      const body = { event: 'customer:created', data: { id: 'cus_1' } }
      const { deliveries } = await call<{ deliveries: { id: string }[] }>(202, 'POST', '/events', body)
      return deliveries[0]!.id
    },
    change: (changes) => call(200, 'PATCH', webhook, changes),
    async hold(isHeld) {
      const path = `/api/operator/organisations/${organisationId}${webhook}/${isHeld ? 'disable' : 'enable'}`
      const options = asOperator('manager', isHeld ? { body: { reason: 'It floods us.' } } : {})
      const { status, text } = await posthorn.call('POST', path, options)
      expect(status, text).to.equal(200)
    },
    retry: (deliveryId) => call(202, 'POST', `${webhook}/deliveries/${deliveryId}/retry`),
    retryAll: (mode) => call(202, 'POST', '/webhooks/retry-deliveries', { mode, id: webhookId }),
    delivery: (deliveryId) => call(200, 'GET', `${webhook}/deliveries/${deliveryId}`),
    async openIncidents() {
      const { data } = await call<{ data: { closedAt: string | null }[] }>(200, 'GET', `${webhook}/incidents`)
      return data.filter(({ closedAt }) => closedAt === null).length
    },
    close: () => receiver.close(),
  }
}
