import type { DeliveryToStart } from '../../db/queries/events.ts'
import type { EndpointHealth } from '../attempt/endpoint.ts'
import type { Endpoints } from '../attempt/endpoint-registry.ts'

/**
 * Who makes the first attempt: the workflow, or, for healthy webhooks, the process itself: always (`direct`) or while
 * Temporal is behind (`overflow`).
 */
export type FirstAttemptMode = 'workflow' | 'overflow' | 'direct'

/** `hasFault`: an inline attempt failed by a fault of ours. Only a workflow attempts it again, with backoff. */
export type RoutedDelivery = DeliveryToStart & { hasFault?: boolean }

type Health = {
  hasFault: boolean
  /** When the webhook was read. */
  hasOpenIncident: boolean
  endpoint: EndpointHealth
}

type Situation = Health & {
  mode: FirstAttemptMode
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

/**
 * An endpoint that has not answered yet counts as healthy: its limit bounds what it can occupy. With an open incident it
 * has to have answered: one that refuses now and then has an incident for much of the time.
 */
function isHealthy({ hasFault, hasOpenIncident, endpoint }: Health): boolean {
  return !hasFault && (endpoint === 'healthy' || (endpoint === 'unproven' && !hasOpenIncident))
}

/** Returns the health of a delivery's webhook: in the database when it was read, and in this process since. */
export function healthOf(delivery: RoutedDelivery, endpoints: Endpoints): Health {
  const { webhookId, hasOpenIncident, hasFault = false } = delivery
  return { hasFault, hasOpenIncident, endpoint: endpoints.health(webhookId) }
}

/** True when the endpoint of the delivery is healthy, or unproven. */
export function isForHealthyEndpoint(delivery: RoutedDelivery, endpoints: Endpoints): boolean {
  return isHealthy(healthOf(delivery, endpoints))
}
