import type { EntityManager } from 'typeorm'
import type { Actor } from '../accounts/actor.ts'
import type { Db } from '../db/db.ts'
import { findWebhook, type WebhookRow } from '../db/queries/webhooks.ts'
import { notFound } from '../errors.ts'
import { transactOnWebhook, type CommandDependencies } from './webhook-locks.ts'

/**
 * Runs a command's transaction under the lock of a webhook of the actor's organisation, with the webhook as it is under
 * the lock. The organisation is checked before the lock too: a caller that waits for the lock of another organisation's
 * webhook learns that it exists, and takes a place in the queue of those that may. Throws 404 where there is none.
 */
export async function transactOnOwn<T>(
  dependencies: CommandDependencies,
  { organisationId }: Pick<Actor, 'organisationId'>,
  id: string,
  work: (manager: EntityManager, webhook: WebhookRow) => Promise<T>,
): Promise<T> {
  await requireWebhook(dependencies.dataSource, organisationId, id)
  return transactOnWebhook(dependencies, id, async (manager) =>
    work(manager, await requireWebhook(manager, organisationId, id)),
  )
}

async function requireWebhook(db: Db, organisationId: string, id: string): Promise<WebhookRow> {
  const webhook = await findWebhook(db, organisationId, id)
  if (webhook === null) throw notFound('webhook')
  return webhook
}
