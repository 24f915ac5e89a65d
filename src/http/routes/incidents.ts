import { listIncidents } from '../../db/queries/incidents.ts'
import { findWebhook } from '../../db/queries/webhooks.ts'
import { WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound } from '../../errors.ts'
import { presentIncident } from '../presenters/incident.ts'
import { param, routeWithQuery, type Route } from '../route.ts'
import { IncidentListSchema, IncidentQuerySchema } from '../schemas/incident.ts'
import { incidentCursor } from '../validation/cursor.ts'

const listRoute = routeWithQuery({
  method: 'GET',
  path: '/api/orgs/:orgId/webhooks/:id/incidents',
  operationId: 'listIncidents',
  summary: "List a webhook's incidents, newest first",
  description:
    'An incident lasts from a failure until no delivery of the webhook is unresolved. Each has its failed attempts, grouped by cause, and who was notified of it.',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  query: IncidentQuerySchema,
  responses: {
    200: {
      description: 'One page',
      schema: IncidentListSchema,
      links: { listIncidents: { cursor: '$response.body#/nextCursor' } },
    },
  },
  async handle({ dataSource }, request) {
    const { actor, query } = request
    const { organisationId } = actor
    const webhook = await findWebhook(dataSource, organisationId, param(request, 'id'))
    if (webhook === null) throw notFound('webhook')
    const after = query.cursor === undefined ? null : incidentCursor.parse(query.cursor)
    const range = { after, limit: query.limit }
    const { page, last } = await listIncidents(dataSource, organisationId, webhook.id, range)
    const data = page.map((incident) => presentIncident(incident, actor))
    return { status: 200, body: { data, nextCursor: last === null ? null : incidentCursor.after(last) } }
  },
})

export const incidentRoutes: readonly Route[] = [listRoute]
