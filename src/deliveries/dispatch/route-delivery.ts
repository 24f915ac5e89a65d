import type { DeliveryToStart } from '../../db/queries/events.ts'
import type { EndpointHealth } from '../attempt/endpoint.ts'
import type { Endpoints } from '../attempt/endpoints.ts'

/**
 * Who makes the first attempt: the workflow; or the process itself for healthy webhooks, always (`direct`) or while
 * Temporal is behind (`overflow`).
 */
export type FirstAttemptMode = 'workflow' | 'overflow' | 'direct'

/** What decides where the first attempt of a delivery is made. */
type Situation = {
  mode: FirstAttemptMode
  /** Of its webhook, when that was read. */
  hasOpenIncident: boolean
  endpoint: EndpointHealth
  isTemporalBehind: boolean
  /** Workflows of completed deliveries are still to be started. */
  isBackfillOwed: boolean
}

/** An inline attempt is for healthy webhooks only: no delivery waits in memory behind an endpoint that hangs or fails. */
export function routeDelivery(situation: Situation): 'inline' | 'workflow' {
  const { mode, isTemporalBehind, isBackfillOwed } = situation
  if (!isHealthy(situation)) return 'workflow'
  switch (mode) {
    case 'workflow':
      return 'workflow'
    case 'direct':
      return 'inline'
    case 'overflow':
      return isTemporalBehind || isBackfillOwed ? 'inline' : 'workflow'
  }
}

/** An endpoint that has not answered yet counts as healthy: its limit keeps it from doing harm. */
function isHealthy({ hasOpenIncident, endpoint }: Pick<Situation, 'hasOpenIncident' | 'endpoint'>): boolean {
  return !hasOpenIncident && (endpoint === 'healthy' || endpoint === 'unproven')
}

/** How the webhook of a delivery does, by the database when it was read and by this process since. */
export function healthOf({ webhookId, hasOpenIncident, readAtMs }: DeliveryToStart, endpoints: Endpoints) {
  return { hasOpenIncident, endpoint: endpoints.health(webhookId, readAtMs) }
}

/** Whether the delivery may wait among those of healthy endpoints. */
export function isForHealthyEndpoint(delivery: DeliveryToStart, endpoints: Endpoints): boolean {
  return isHealthy(healthOf(delivery, endpoints))
}
