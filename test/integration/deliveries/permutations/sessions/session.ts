import type { EntityManager } from 'typeorm'
import { lockWebhook } from '../../../../../src/db/queries/webhooks.ts'
import type { WebhookLocks } from '../../../../../src/webhooks/webhook-locks.ts'
import type { Work } from '../stepped-session.ts'
import type { Did } from '../outcome.ts'
import { ORGANISATION, WEBHOOK } from '../rows.ts'

/** `isRepeated`: the product does it again, as long as it passes over rows that are locked. */
export type Session = Work<Did> & { isRepeated?: true }

export const OF_WEBHOOK = { organisationId: ORGANISATION, webhookId: WEBHOOK }

/** The lock of a webhook, for which a session waits as long as it takes: when to give up is tested elsewhere. */
export const locks: WebhookLocks = {
  transact: (dataSource, { webhookId }, work) =>
    dataSource.transaction(async (manager) => {
      await lockWebhook(manager, webhookId)
      return work(manager)
    }),
}

/** A transaction under the lock of the webhook. */
export function underLock(work: (manager: EntityManager) => Promise<Did>): Session {
  return (dataSource) => locks.transact(dataSource, OF_WEBHOOK, work, 0)
}

/** A statement that the product sends alone: its transaction lasts until the step that commits it. */
export function alone(work: (manager: EntityManager) => Promise<Did>): Session {
  return (dataSource) => dataSource.transaction(work)
}
