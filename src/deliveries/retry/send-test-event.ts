import type { DataSource } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import { TEST_EVENT_KEY, isSubscribedTo } from '../../domain/permissions.ts'
import type { Catalogue } from '../../catalogue/catalogue.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { findMember } from '../../db/queries/organisations.ts'
import { requireWebhook, type WebhookRow } from '../../db/queries/webhooks.ts'
import { conflict, notFound, requirePermissions, webhookDisabled } from '../../problem-error.ts'
import { newTestEvent } from '../publish/envelope.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { commitReserved, type Commits } from '../protocol/commit-events.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'

type Dependencies = {
  dataSource: DataSource
  clock: { nowMs(): number }
  catalogue: Pick<Catalogue, 'find' | 'permissionFor'>
  dispatcher: Pick<Dispatcher, 'start'>
  metrics: Pick<Metrics, 'eventPublished'>
  commits: Commits
}

/**
 * Sends one test event to this webhook only: a `webhook:test`, or the example of `eventKey`. Returns the id of its
 * delivery. Throws 403 where the member may not read the key, 409 where the webhook is disabled or not subscribed to it.
 */
export async function sendTestEvent(
  { dataSource, clock, catalogue, dispatcher, metrics, commits }: Dependencies,
  actor: Actor,
  webhookId: string,
  eventKey: string | null,
): Promise<string> {
  const { organisationId } = actor
  const webhook = await requireWebhook(dataSource, organisationId, webhookId)
  const sent =
    eventKey === null
      ? { event: TEST_EVENT_KEY, data: { webhookId } }
      : { event: eventKey, data: exampleFor(actor, webhook, catalogue, eventKey) }
  const triggeredBy = await findMember(dataSource, organisationId, actor.memberId)
  const event = newTestEvent(organisationId, webhookId, { ...sent, timestamp: clock.nowMs(), triggeredBy })
  const delivery = await dataSource.transaction(async (manager) => {
    const [[committed] = []] = await commitReserved(manager, commits, [event], 1)
    if (committed === undefined) throw webhookDisabled(webhook)
    const { deliveryId } = committed
    const details = eventKey === null ? {} : { eventKey }
    await recordAudit(manager, actor, { action: 'webhook.tested', webhookId, deliveryId, details })
    return committed
  })
  metrics.eventPublished(1)
  dispatcher.start([delivery])
  return delivery.deliveryId
}

/** Returns the example of the key in the catalogue, for a webhook that receives such events. */
function exampleFor(
  actor: Actor,
  { subscribedEventKeys }: WebhookRow,
  { find, permissionFor }: Dependencies['catalogue'],
  eventKey: string,
): object {
  const entry = find(eventKey)
  if (entry === undefined) throw notFound('event key')
  requirePermissions(actor, [permissionFor(eventKey)])
  if (!isSubscribedTo(subscribedEventKeys, eventKey))
    throw conflict('not_subscribed', `The webhook is not subscribed to ${eventKey}.`)
  return entry.example
}
