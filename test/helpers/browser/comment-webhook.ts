import { createWebhookRow } from '../database/factories.ts'
import { writeBacklog } from '../deliveries/backlog.ts'
import type { DeveloperArea } from './browser.ts'

/** Creates a webhook at `path` of the stage's receiver that is subscribed to `comment:created` only. */
export function createCommentWebhook(area: DeveloperArea, path: string, enabled = true) {
  const { dataSource, member, receiver } = area.stage
  return createWebhookRow(dataSource, {
    organisationId: member.organisationId,
    url: receiver.url.replace('/hook', path),
    subscribedEventKeys: ['comment:created'],
    enabled,
  })
}

/** Writes deliveries of a key that the webhook takes; returns their ids. */
export function writeBacklogOf(
  area: DeveloperArea,
  webhookId: string,
  state: 'failed' | 'waiting',
  count: number,
): Promise<string[]> {
  const { dataSource, member, webhookId: ownId } = area.stage
  const eventKey = webhookId === ownId ? 'customer:created' : 'comment:created'
  return writeBacklog(dataSource, {
    organisationId: member.organisationId,
    webhookId,
    state,
    count,
    eventKey,
  })
}
