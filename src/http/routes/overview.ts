import { firstAttemptLatency, listBuckets, p95Duration } from '../../db/queries/activity.ts'
import { listAudit } from '../../db/queries/audit.ts'
import { findFailures } from '../../db/queries/failures.ts'
import { listIncidents } from '../../db/queries/incidents.ts'
import { listOverview } from '../../db/queries/overview.ts'
import {
  ACTIVITY_RANGES,
  ActivityListSchema,
  ActivityQuerySchema,
  ActivitySchema,
  IncidentSchema,
  OverviewListSchema,
} from '../schemas/overview.ts'
import { FULL_ACCESS, WEBHOOK_READ } from '../../domain/permissions.ts'
import { listRoute } from '../list-route.ts'
import {
  presentActivities,
  presentActivity,
  presentIncident,
  presentOverview,
} from '../presenters/webhook.ts'
import { presentAuditEntry } from '../presenters/presenter.ts'
import { typedRoute, type Route } from '../route.ts'
import { AuditEntrySchema, AuditFilterSchema } from '../schemas/organisation.ts'
import { EXAMPLE_IDS } from '../schemas/common.ts'
import { webhookOfPath } from './webhooks.ts'

const WEBHOOKS = '/api/orgs/:orgId/webhooks'

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

const activityRoute = typedRoute({
  method: 'GET',
  path: `${WEBHOOKS}/:id/activity`,
  operationId: 'getActivity',
  summary: "See a webhook's last hour, 24 hours or 7 days",
  description:
    'Attempts by time and outcome, how long they took, how fast first attempts were, and the failed ones by cause.',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  query: ActivityQuerySchema,
  responses: { 200: { description: 'The activity', schema: ActivitySchema } },
  async handle(dependencies, request) {
    const { dataSource } = dependencies
    const { organisationId } = request.actor
    const range = ACTIVITY_RANGES[request.query.range]
    const webhook = await webhookOfPath(dependencies, request)
    const within = [dataSource, organisationId, webhook.id, range.buckets * range.bucketMs] as const
    const [buckets, p95DurationMs, firstAttempt, failures] = await Promise.all([
      listBuckets(dataSource, organisationId, webhook.id, range),
      p95Duration(...within),
      firstAttemptLatency(...within),
      findFailures(...within),
    ])
    const found = { p95DurationMs, firstAttempt, failures }
    return { status: 200, body: presentActivity(range.bucketMs, buckets, found) }
  },
})

const activityOfAllRoute = typedRoute({
  method: 'GET',
  path: `${WEBHOOKS}/activity`,
  operationId: 'listActivity',
  summary: "See every webhook's last hour, 24 hours or 7 days: attempts by time and outcome",
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  query: ActivityQuerySchema,
  responses: { 200: { description: 'The activity', schema: ActivityListSchema } },
  async handle({ dataSource }, { actor, query }) {
    const range = ACTIVITY_RANGES[query.range]
    const buckets = await listBuckets(dataSource, actor.organisationId, null, range)
    return { status: 200, body: { data: presentActivities(range.bucketMs, buckets) } }
  },
})

export const overviewRoutes: readonly Route[] = [overviewRoute, activityOfAllRoute, activityRoute]

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
    cursorPrefix: 'i1',
    exampleId: EXAMPLE_IDS.incident,
    async open(dependencies, request) {
      const { id } = await webhookOfPath(dependencies, request)
      return (range) => listIncidents(dependencies.dataSource, request.actor.organisationId, id, range)
    },
    present: (incident, { actor }) => presentIncident(incident, actor),
  }),
]

export const auditRoutes: readonly Route[] = [
  listRoute({
    path: '/api/orgs/:orgId/audit',
    operationId: 'listAudit',
    summary: 'See who did what, newest first',
    description:
      'Every management action, every access to a signing secret and every change at the command line, with member, key, address and time. Entries cannot be changed. Needs full access. One request looks at 5,000 entries at most for those that fit; `searchedUntil` and `nextCursor` are those of a bounded search.',
    access: { kind: 'organisation', permission: FULL_ACCESS },
    title: 'AuditList',
    item: AuditEntrySchema,
    what: 'Entries',
    cursorPrefix: 'a1',
    exampleId: EXAMPLE_IDS.auditEntry,
    filter: AuditFilterSchema,
    isSearched: true,
    open({ dataSource }, { actor, query: { webhookId = null, memberId = null, action = null } }) {
      const filter = { webhookId, memberId, action }
      return (range) => listAudit(dataSource, actor.organisationId, { ...filter, ...range })
    },
    present: presentAuditEntry,
  }),
]
