import { askForRetry } from '../src/db/queries/interventions.ts'
import { untilDatabaseAnswers } from '../src/db/patience.ts'
import type { AttemptDependencies } from '../src/deliveries/attempt/attempt-request.ts'
import { withHeartbeat } from './with-heartbeat.ts'

type DeliveryIds = { organisationId: string; webhookId: string; deliveryId: string }

/** Running twice is harmless: a row that says so already says it again. */
export function createAskForRetry({ dataSource }: Pick<AttemptDependencies, 'dataSource'>) {
  return ({ organisationId, webhookId, deliveryId }: DeliveryIds): Promise<void> =>
    withHeartbeat(async ({ cancelled }) => {
      await untilDatabaseAnswers(
        () => askForRetry(dataSource, organisationId, webhookId, deliveryId),
        cancelled,
      )
    })
}
