import { requestRetry } from '../src/db/queries/retry-requests.ts'
import { retryWhileUnavailable } from '../src/db/retry-while-unavailable.ts'
import { transactOnWebhook, type CommandDependencies } from '../src/incidents/webhook-locks.ts'
import { withHeartbeat } from './with-heartbeat.ts'

type DeliveryIds = { organisationId: string; webhookId: string; deliveryId: string }

/** Running twice is harmless: it sets the same columns again. */
export function createRequestRetry(dependencies: CommandDependencies) {
  return ({ organisationId, webhookId, deliveryId }: DeliveryIds): Promise<void> =>
    withHeartbeat(async ({ cancelled }) => {
      await retryWhileUnavailable(
        () =>
          transactOnWebhook(dependencies, webhookId, (manager) =>
            requestRetry(manager, organisationId, webhookId, deliveryId),
          ),
        cancelled,
      )
    })
}
