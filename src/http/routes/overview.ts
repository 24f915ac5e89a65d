import { firstAttemptLatency, listHours } from '../../db/queries/activity.ts'
import { listOverview } from '../../db/queries/overview.ts'
import { findWebhook } from '../../db/queries/webhooks.ts'
import { WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound } from '../../errors.ts'
import { presentActivities, presentActivity, presentOverview } from '../presenters/overview.ts'
import { param, type Route } from '../route.ts'
import { ActivityListSchema, ActivitySchema, OverviewListSchema } from '../schemas/overview.ts'

const WEBHOOKS = '/api/orgs/:orgId/webhooks'
const HOURS = 24

const overviewRoute: Route = {
  method: 'GET',
  path: `${WEBHOOKS}/overview`,
  operationId: 'getOverview',
  summary: 'See all webhooks and how they stand, at a glance',
  description: 'Each webhook with its counts, latest attempt and open incident, without payloads.',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'All webhooks', schema: OverviewListSchema } },
  async handle({ dataSource, catalogue }, { actor }) {
    const webhooks = await listOverview(dataSource, actor.organisationId)
    const data = webhooks.map((webhook) => presentOverview(webhook, actor, catalogue.permissionFor))
    return { status: 200, body: { data } }
  },
}

const activityRoute: Route = {
  method: 'GET',
  path: `${WEBHOOKS}/:id/activity`,
  operationId: 'getActivity',
  summary: "See a webhook's last 24 hours: attempts by hour and outcome, and how fast first attempts were",
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The last 24 hours', schema: ActivitySchema } },
  async handle({ dataSource }, request) {
    const { organisationId } = request.actor
    const webhook = await findWebhook(dataSource, organisationId, param(request, 'id'))
    if (webhook === null) throw notFound('webhook')
    const [hours, latency] = await Promise.all([
      listHours(dataSource, organisationId, webhook.id, HOURS),
      firstAttemptLatency(dataSource, organisationId, webhook.id, HOURS),
    ])
    return { status: 200, body: presentActivity(hours, latency) }
  },
}

const activityOfAllRoute: Route = {
  method: 'GET',
  path: `${WEBHOOKS}/activity`,
  operationId: 'listActivity',
  summary: "See every webhook's last 24 hours: attempts by hour and outcome",
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The last 24 hours', schema: ActivityListSchema } },
  async handle({ dataSource }, { actor }) {
    const hours = await listHours(dataSource, actor.organisationId, null, HOURS)
    return { status: 200, body: { data: presentActivities(hours) } }
  },
}

export const overviewRoutes: readonly Route[] = [overviewRoute, activityOfAllRoute, activityRoute]
