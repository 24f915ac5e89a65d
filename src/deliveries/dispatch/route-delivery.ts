import type { DeliveryToStart } from '../../db/queries/events.ts'
import type { EndpointHealth } from '../attempt/endpoint.ts'
import type { Endpoints } from '../attempt/endpoint-registry.ts'

/**
 * Who makes the first attempt: the workflow, or, for healthy webhooks, the process itself: always (`direct`) or while
 * Temporal is behind (`overflow`).
 */
export type FirstAttemptMode = 'workflow' | 'overflow' | 'direct'

type Situation = {
  mode: FirstAttemptMode
  /** When the webhook was read. */
  hasOpenIncident: boolean
  endpoint: EndpointHealth
  isTemporalBehind: boolean
  /** Workflows of completed deliveries are still to be started. */
  isBackfillPending: boolean
}

/** Decides who makes a first attempt. Unhealthy webhooks get none inline: a hanging endpoint would delay other deliveries. */
export function routeDelivery(situation: Situation): 'inline' | 'workflow' {
  const { mode, isTemporalBehind, isBackfillPending } = situation
  if (!isHealthy(situation)) return 'workflow'
  switch (mode) {
    case 'workflow':
      return 'workflow'
    case 'direct':
      return 'inline'
    case 'overflow':
      return isTemporalBehind || isBackfillPending ? 'inline' : 'workflow'
  }
}

/** An endpoint that has not answered yet counts as healthy: its limit bounds what it can occupy. */
function isHealthy({ hasOpenIncident, endpoint }: Pick<Situation, 'hasOpenIncident' | 'endpoint'>): boolean {
  return !hasOpenIncident && (endpoint === 'healthy' || endpoint === 'unproven')
}

/** Returns the health of a delivery's webhook: in the database when it was read, and in this process since. */
export function healthOf({ webhookId, hasOpenIncident, readAtMs }: DeliveryToStart, endpoints: Endpoints) {
  return { hasOpenIncident, endpoint: endpoints.health(webhookId, readAtMs) }
}

/** True when the endpoint of the delivery is healthy, or unproven. */
export function isForHealthyEndpoint(delivery: DeliveryToStart, endpoints: Endpoints): boolean {
  return isHealthy(healthOf(delivery, endpoints))
}
