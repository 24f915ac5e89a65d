import { Type } from 'typebox'
import { builtInCatalogue } from '../../catalogue/built-in-catalogue.ts'
import { bytesOfCatalogue } from '../answer.ts'
import type { ApiDependencies } from '../api.ts'
import { openApiDocument } from '../openapi.ts'
import { ReadinessSchema, readSharedReadiness } from '../readiness.ts'
import type { Route } from '../route.ts'
import { openObject } from '../schemas/common.ts'
import { apiKeyRoutes, operatorApiKeyRoutes } from './api-keys.ts'
import { deliveryRoutes } from './deliveries.ts'
import { eventStreamRoutes } from './event-stream.ts'
import { eventRoutes } from './events.ts'
import { operatorMemberRoutes } from './operator-members.ts'
import { operatorOrganisationRoutes } from './operator-organisations.ts'
import { operatorViewRoutes } from './operator-view.ts'
import { pushSubscriptionRoutes } from './push-subscriptions.ts'
import { auditRoutes, incidentRoutes, overviewRoutes } from './overview.ts'
import { portalLinkRoutes } from './portal-links.ts'
import { replayRoutes } from './replays.ts'
import { retryRoutes } from './retries.ts'
import { retryJobRoutes } from './retry-jobs.ts'
import { sessionRoutes } from './session.ts'
import { webhookRoutes } from './webhooks.ts'

const HealthSchema = Type.Object({ status: Type.Literal('ok') }, { title: 'Health' })

const OpenApiSchema = openObject({
  title: 'OpenApiDocument',
  examples: [{ openapi: '3.1.0', info: { title: 'Posthorn' } }],
})

const healthRoute: Route = {
  method: 'GET',
  path: '/healthz',
  operationId: 'getHealth',
  summary: 'The process answers',
  access: { kind: 'open' },
  // A probe may share its address with all senders, such as that of its node.
  countsAddress: false,
  responses: { 200: { description: 'Alive', schema: HealthSchema } },
  handle: () => Promise.resolve({ status: 200, body: { status: 'ok' } }),
}

const readyRoute: Route = {
  method: 'GET',
  path: '/readyz',
  operationId: 'getReadiness',
  summary: 'The database and Temporal can be reached',
  description:
    'Ready while the database answers and takes events: they are accepted without Temporal and delivered when it is back.',
  access: { kind: 'open' },
  countsAddress: false,
  responses: {
    200: { description: 'Ready', schema: ReadinessSchema },
    503: {
      description: 'The database is down, or the process is about to end',
      schema: ReadinessSchema,
      example: { database: 'down', engine: 'up' },
    },
  },
  async handle(dependencies) {
    const { isReady, body } = await readSharedReadiness(dependencies)
    return { status: isReady ? 200 : 503, body }
  },
}

const NO_QUERY = Type.Object({}, { additionalProperties: false })

const documentBytes = bytesOfCatalogue((catalogue) => openApiDocument(routes, catalogue))
const bytesWithoutKeys = bytesOfCatalogue(() => openApiDocument(routes, { eventKeys: [] }))

const openApiRoute: Route = {
  method: 'GET',
  path: '/openapi.json',
  operationId: 'getOpenApi',
  summary: 'This document',
  description:
    'Where the service has an event catalogue of its own, the keys and payloads of its events are only in the document for callers with a valid key or session.',
  access: { kind: 'open', recognises: hasOwnCatalogue },
  responses: { 200: { description: 'OpenAPI 3.1', schema: OpenApiSchema } },
  handle(dependencies, { actor }) {
    const { catalogue } = dependencies
    const isStranger = hasOwnCatalogue(dependencies) && actor.organisationId === ''
    const bytes = isStranger ? bytesWithoutKeys(catalogue) : documentBytes(catalogue)
    return Promise.resolve({ status: 200, json: bytes })
  },
}

/**
 * Every route of the API with its group; `/openapi.json` documents exactly these. Where two paths match, the more specific
 * one counts, whatever the order here.
 */
export const routes: readonly Route[] = [
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
  healthRoute,
  readyRoute,
  openApiRoute,
]

/** Returns the routes with their group. Those that take no query parameters refuse them too. */
function tagged(tag: string, group: readonly Route[]): Route[] {
  return group.map((route) => ({ query: NO_QUERY, ...route, tag }))
}

/** Such a catalogue describes the platform, to its customers only, as in `/api/event-keys`; the built-in one is public. */
function hasOwnCatalogue({ catalogue }: Pick<ApiDependencies, 'catalogue'>): boolean {
  return catalogue !== builtInCatalogue
}
