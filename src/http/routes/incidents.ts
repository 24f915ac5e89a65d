import { listIncidents } from '../../db/queries/incident-history.ts'
import { findWebhook } from '../../db/queries/webhooks.ts'
import { WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound } from '../../errors.ts'
import { presentIncident } from '../presenters/incident.ts'
import { param, type Route } from '../route.ts'
import { IncidentListSchema } from '../schemas/incident.ts'

/** Closed incidents are purged in time, and readers want the latest ones. */
const MAX_INCIDENTS = 100

const listRoute: Route = {
  method: 'GET',
  path: '/api/orgs/:orgId/webhooks/:id/incidents',
  operationId: 'listIncidents',
  summary: "List a webhook's incidents, newest first",
  description: `An incident lasts from a failure until no delivery of the webhook is unresolved. The latest ${MAX_INCIDENTS}.`,
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The latest incidents', schema: IncidentListSchema } },
  async handle({ dataSource }, request) {
    const { actor } = request
    const { organisationId } = actor
    const webhook = await findWebhook(dataSource, organisationId, param(request, 'id'))
    if (webhook === null) throw notFound('webhook')
    const incidents = await listIncidents(dataSource, organisationId, webhook.id, MAX_INCIDENTS)
    return { status: 200, body: { data: incidents.map((incident) => presentIncident(incident, actor)) } }
  },
}

export const incidentRoutes: readonly Route[] = [listRoute]
