import { listIncidents } from '../../db/queries/incidents.ts'
import { WEBHOOK_READ } from '../../domain/permissions.ts'
import { listRoute } from '../list-route.ts'
import { presentIncident } from '../presenters/webhook.ts'
import type { Route } from '../route.ts'
import { EXAMPLE_IDS } from '../schemas/common.ts'
import { IncidentSchema } from '../schemas/incident.ts'
import { incidentCursor } from '../validation/cursor.ts'
import { requireWebhook } from './webhooks.ts'

export const incidentRoutes: readonly Route[] = [
  listRoute({
    path: '/api/orgs/:orgId/webhooks/:id/incidents',
    operationId: 'listIncidents',
    summary: "List a webhook's incidents, newest first",
    description:
      'An incident lasts from a failure until no delivery of the webhook is unresolved. Each has its failed attempts, grouped by cause, and who was notified of it.',
    access: { kind: 'organisation', permission: WEBHOOK_READ },
    title: 'IncidentList',
    item: IncidentSchema,
    what: 'Incidents',
    cursor: incidentCursor,
    exampleId: EXAMPLE_IDS.incident,
    async open(dependencies, request) {
      const { id } = await requireWebhook(dependencies, request)
      return (range) => listIncidents(dependencies.dataSource, request.actor.organisationId, id, range)
    },
    present: (incident, { actor }) => presentIncident(incident, actor),
  }),
]
