import type { Route } from '../route.ts'
import { auditRoutes } from './audit.ts'
import { deliveryRoutes } from './deliveries.ts'
import { eventStreamRoutes } from './event-stream.ts'
import { eventRoutes } from './events.ts'
import { incidentRoutes } from './incidents.ts'
import { pushSubscriptionRoutes } from './push-subscriptions.ts'
import { overviewRoutes } from './overview.ts'
import { retryRoutes } from './retries.ts'
import { sessionRoutes } from './session.ts'
import { createSystemRoutes } from './system.ts'
import { webhookRoutes } from './webhooks.ts'

/** The first route that fits is taken: fixed paths below `/webhooks` and `/events` stand before those with an id. */
const resourceRoutes: readonly Route[] = [
  ...overviewRoutes,
  ...deliveryRoutes,
  ...retryRoutes,
  ...incidentRoutes,
  ...webhookRoutes,
  ...eventStreamRoutes,
  ...eventRoutes,
  ...pushSubscriptionRoutes,
  ...auditRoutes,
  ...sessionRoutes,
]

/** Every route of the API; `/openapi.json` documents exactly these. */
export const routes: readonly Route[] = [...resourceRoutes, ...createSystemRoutes(resourceRoutes)]
