import { setTimeout as delay } from 'node:timers/promises'
import { note, request } from './act.ts'
import { callPosthorn } from './call-posthorn.ts'
import { nowMs } from './clock.ts'
import { FAN_OUT_KEY } from './plan.ts'
import type { WebhookChange } from './record.ts'
import type { PlayWorld, WorldWebhook } from './world.ts'

const REPEAT_AFTER_MS = 300
/** A change is repeated until it is confirmed, so that the webhook is known; longer than any fault and its recovery. */
const CONFIRMED_LIMIT_MS = 120_000

export async function switchForAWhile(world: PlayWorld, webhook: WorldWebhook, forMs: number): Promise<void> {
  await changeWebhook(world, webhook, () => ({ enabled: false }))
  await delay(forMs)
  await changeWebhook(world, webhook, () => ({ enabled: true }))
}

export async function narrowForAWhile(world: PlayWorld, webhook: WorldWebhook, forMs: number): Promise<void> {
  await changeWebhook(world, webhook, () => ({ subscribedEventKeys: [FAN_OUT_KEY] }))
  await delay(forMs)
  await changeWebhook(world, webhook, () => ({ subscribedEventKeys: webhook.subscribedEventKeys }))
}

/** Changes a webhook, after the changes before, and repeats that until it is confirmed or the webhook is gone. */
export function changeWebhook(
  world: PlayWorld,
  webhook: WorldWebhook,
  changeTo: () => WebhookChange,
): Promise<void> {
  webhook.changed = webhook.changed.then(async () => {
    const change = changeTo()
    const deadline = nowMs() + CONFIRMED_LIMIT_MS
    while (!webhook.isDeleted && !(await isConfirmed(world, webhook, change))) {
      if (nowMs() > deadline) throw new Error(`webhook ${webhook.id} could not be changed`)
      await delay(REPEAT_AFTER_MS)
    }
  })
  return webhook.changed
}

async function isConfirmed(world: PlayWorld, webhook: WorldWebhook, change: WebhookChange): Promise<boolean> {
  const { id: webhookId, organisationId, endpoint } = webhook
  const noted = { kind: 'change', organisationId, webhookId, deliveryId: null, change } as const
  const { isDeleted = false, urlVersion, ...fields } = change
  const path = `/webhooks/${webhookId}`
  const url = urlVersion === undefined ? {} : { url: world.endpoints.urlOf(endpoint, urlVersion) }
  const status = isDeleted
    ? await request(world, noted, 'DELETE', path)
    : await request(world, noted, 'PATCH', path, { ...fields, ...url })
  // Gone with its organisation, or since an earlier try, whose answer was lost.
  if (status === 404 || status === 401 || status === 204) webhook.isDeleted = true
  if (status === 200 && urlVersion !== undefined) webhook.urlVersion = urlVersion
  return status === 200 || webhook.isDeleted
}

/** Creates a webhook in the organisation of another, and repeats that with one key until it is confirmed. */
export async function createWebhook(world: PlayWorld, like: WorldWebhook): Promise<void> {
  const { organisationId } = like
  const { apiKey } = world.members.find((member) => member.organisationId === organisationId)!
  const endpoint = world.endpoints.add([{ forMs: 0, behaviour: 'confirms' }])
  const { subscribedEventKeys } = like
  const url = world.endpoints.urlOf(endpoint, 0)
  const deadline = nowMs() + CONFIRMED_LIMIT_MS
  while (nowMs() < deadline) {
    const action = note(world, { kind: 'create', organisationId, webhookId: null, deliveryId: null })
    const { json, ...answered } = await callPosthorn(world, 'POST', `/api/orgs/${organisationId}/webhooks`, {
      headers: { 'x-api-key': apiKey, 'idempotency-key': `create-${endpoint}` },
      body: { url, subscribedEventKeys, enabled: true },
    })
    Object.assign(action, answered)
    // The organisation is gone.
    if (answered.status === 401 || answered.status === 404) return
    if (answered.status === 201) {
      const { id, signingSecret = '' } = json as { id: string; signingSecret?: string }
      action.webhookId = id
      world.endpoints.belongsTo(endpoint, id)
      const made = { id, organisationId, name: 'created', signingSecret, subscribedEventKeys, endpoint }
      const state = { isVictim: false, hangsAtEnd: false, urlVersion: 0, isDeleted: false }
      world.webhooks.push({ ...made, ...state, changed: Promise.resolve() })
      return
    }
    await delay(REPEAT_AFTER_MS)
  }
}
