import { DELIVERY_STATES } from '../src/domain/delivery-state.ts'
import { requestRetries } from '../src/deliveries/protocol/change-deliveries.ts'
import { retryWhileUnavailable } from '../src/db/connection/retry-while-unavailable.ts'
import { transactOnWebhook, type CommandDependencies } from '../src/webhooks/webhook-locks.ts'
import { withHeartbeat } from './with-heartbeat.ts'

type DeliveryIds = { organisationId: string; webhookId: string; deliveryId: string }

/** Running twice is harmless: it sets the same columns again. */
export function createRequestRetry(dependencies: CommandDependencies) {
  return ({ organisationId, webhookId, deliveryId }: DeliveryIds): Promise<void> =>
    withHeartbeat(async ({ cancelled }) => {
      await retryWhileUnavailable(
        () =>
          transactOnWebhook(dependencies, webhookId, (manager) =>
            requestRetries(manager, {
              organisationId,
              webhookId,
              ids: [deliveryId],
              states: DELIVERY_STATES,
            }),
          ),
        cancelled,
      )
    })
}
