import type { Route } from '../route.ts'
import { apiKeyRoutes, operatorApiKeyRoutes } from './api-keys.ts'
import { auditRoutes } from './audit.ts'
import { deliveryRoutes } from './deliveries.ts'
import { eventStreamRoutes } from './event-stream.ts'
import { eventRoutes } from './events.ts'
import { operatorMemberRoutes } from './operator-members.ts'
import { operatorOrganisationRoutes } from './operator-organisations.ts'
import { operatorViewRoutes } from './operator-view.ts'
import { pushSubscriptionRoutes } from './push-subscriptions.ts'
import { incidentRoutes, overviewRoutes } from './overview.ts'
import { portalLinkRoutes } from './portal-links.ts'
import { replayRoutes } from './replays.ts'
import { retryRoutes } from './retries.ts'
import { retryJobRoutes } from './retry-jobs.ts'
import { sessionRoutes } from './session.ts'
import { createSystemRoutes } from './system.ts'
import { webhookRoutes } from './webhooks.ts'

/** Every route with its group; where two paths match, the more specific one counts, whatever the order here. */
const resourceRoutes: readonly Route[] = [
  ...tagged('Webhooks', webhookRoutes),
  ...tagged('Deliveries', [
    ...overviewRoutes,
    ...deliveryRoutes,
    ...retryJobRoutes,
    ...retryRoutes,
    ...replayRoutes,
  ]),
  ...tagged('Incidents', incidentRoutes),
  ...tagged('Events', [...eventRoutes, ...eventStreamRoutes]),
  ...tagged('Push subscriptions', pushSubscriptionRoutes),
  ...tagged('API keys', apiKeyRoutes),
  ...tagged('Audit trail', auditRoutes),
  ...tagged('Sessions', sessionRoutes),
  ...tagged('Portal links', portalLinkRoutes),
  ...tagged('Operator', [
    ...operatorOrganisationRoutes,
    ...operatorMemberRoutes,
    ...operatorApiKeyRoutes,
    ...operatorViewRoutes,
  ]),
]

/** Every route of the API; `/openapi.json` documents exactly these. */
export const routes: readonly Route[] = [...resourceRoutes, ...createSystemRoutes(resourceRoutes)]

function tagged(tag: string, group: readonly Route[]): Route[] {
  return group.map((route) => ({ ...route, tag }))
}
