import { eventKeyErrors, type Catalogue } from '../../catalogue/catalogue.ts'
import { operatorInAudit } from '../../accounts/operator.ts'
import { listDeliveriesOfEvent } from '../../db/queries/deliveries.ts'
import { listEvents, findEvent } from '../../db/queries/events.ts'
import {
  EVENT_PUBLISH,
  FULL_ACCESS,
  mayReadPayload,
  missingPermissions,
  TEST_EVENT_KEY,
  type Grants,
} from '../../domain/permissions.ts'
import { MAX_EVENT_BYTES } from '../../domain/text-rules.ts'
import { notFound, requirePermissions, type FieldError } from '../../problem-error.ts'
import { publishEvent } from '../../deliveries/publish/publish.ts'
import { erasePayload } from '../../deliveries/retry/erase-payload.ts'
import type { ApiDependencies } from '../api.ts'
import { bytesOfCatalogue } from '../answer.ts'
import { listRoute } from '../list-route.ts'
import { presentEvent } from '../presenters/delivery.ts'
import { presentEventKey, presentEventSummary } from '../presenters/presenter.ts'
import { param, typedRoute, type Route } from '../route.ts'
import {
  EventFilterSchema,
  EventKeyListSchema,
  EventSchema,
  EventSummarySchema,
  PublishedSchema,
  PublishEventSchema,
} from '../schemas/event.ts'
import { EXAMPLE_IDS } from '../schemas/common.ts'
import { checkCostlyPayload } from '../validation/check-request.ts'

const FIRST_DELIVERY = {
  id: '$response.body#/deliveries/0/webhookId',
  deliveryId: '$response.body#/deliveries/0/id',
}

const publishRoute = typedRoute({
  method: 'POST',
  path: '/api/orgs/:orgId/events',
  operationId: 'publishEvent',
  summary: 'Publish an event',
  description:
    'Answered once the event and its deliveries are committed: from then on nothing is lost. An operator key with the scope `publish` publishes for every organisation; all operator keys share their idempotency keys.',
  access: { kind: 'organisation', permission: EVENT_PUBLISH, operatorScope: 'publish' },
  limit: 'publish',
  body: { schema: PublishEventSchema, maxBytes: MAX_EVENT_BYTES, rules: eventErrors },
  idempotent: true,
  traced: true,
  responses: {
    202: {
      description: 'Committed',
      schema: PublishedSchema,
      links: {
        getEvent: { eventId: '$response.body#/id' },
        eraseEventPayload: { eventId: '$response.body#/id' },
        getDelivery: FIRST_DELIVERY,
        retryDelivery: FIRST_DELIVERY,
        discardDelivery: FIRST_DELIVERY,
      },
    },
    503: {
      description:
        'The database cannot be reached (`unavailable`), or too many deliveries wait for their first attempt or are being published, or too many large payloads wait for their check (`overloaded`); see Retry-After',
      headers: { 'Retry-After': 'Seconds to wait' },
      problem: ['unavailable', 'overloaded', 'too_many_connections'],
    },
  },
  async handle(dependencies, { actor, body, bodyText, idempotency, trace: given }) {
    await checkCostlyPayload(dependencies, actor, body, bodyText)
    const sent = { ...body, json: bodyText }
    const { id, deliveries, trace } = await publishEvent(dependencies, actor, sent, given, idempotency)
    return { status: 202, body: { id, deliveries }, trace }
  },
})

const eventsRoute = listRoute({
  path: '/api/orgs/:orgId/events',
  operationId: 'listEvents',
  summary: "List the organisation's events, newest first",
  description:
    'Shows the events whose key the member may read, without payloads. One request looks at 5,000 events at most for those that fit; `searchedUntil` and `nextCursor` are those of a bounded search.',
  access: { kind: 'organisation', permission: null },
  title: 'EventList',
  item: EventSummarySchema,
  what: 'Events',
  cursorPrefix: 'e1',
  exampleId: EXAMPLE_IDS.event,
  filter: EventFilterSchema,
  isSearched: true,
  links: { getEvent: { eventId: '$response.body#/data/0/id' } },
  open({ dataSource, catalogue }, { actor, query }) {
    const { eventKey = null, since, until, search = null } = query
    const filter = {
      readableKeys: readableKeys(actor, catalogue),
      eventKey,
      since: since === undefined ? null : new Date(since),
      until: until === undefined ? null : new Date(until),
      search,
    }
    return (range) => listEvents(dataSource, actor.organisationId, { ...filter, ...range })
  },
  present: presentEventSummary,
})

const getRoute: Route = {
  method: 'GET',
  path: '/api/orgs/:orgId/events/:eventId',
  operationId: 'getEvent',
  summary: 'Get an event and the states of its deliveries',
  description:
    "Needs `event:publish` or the event key's own permission. `payload` is null for a member without the latter, and once it is erased.",
  access: { kind: 'organisation', permission: null },
  responses: { 200: { description: 'The event', schema: EventSchema } },
  async handle({ dataSource, catalogue }, request) {
    const { actor } = request
    const event = await findEvent(dataSource, actor.organisationId, param(request, 'eventId'))
    if (event === null) throw notFound('event')
    if (missingPermissions(actor, [EVENT_PUBLISH]).length > 0)
      requirePermissions(actor, [catalogue.permissionFor(event.eventKey)])
    const deliveries = await listDeliveriesOfEvent(dataSource, actor.organisationId, event.id)
    return { status: 200, json: presentEvent(event, deliveries, actor, catalogue.permissionFor) }
  },
}

const erasePayloadRoute: Route = {
  method: 'DELETE',
  path: '/api/orgs/:orgId/events/:eventId/payload',
  operationId: 'eraseEventPayload',
  summary: "Erase an event's payload and what endpoints answered to it",
  description:
    'For good. What is open of its deliveries is `stopped` with `payload_erased`; an attempt that has begun finishes first, and its outcome is kept. Ids, times and outcomes stay. Can be repeated. Needs full access, or an operator key with the scope `manage`.',
  access: { kind: 'organisation', permission: FULL_ACCESS, operatorScope: 'manage' },
  responses: { 204: { description: 'It is erased, and no attempt begins any more' } },
  async handle(dependencies, request) {
    const { actor, operator } = request
    const by = operator === null ? actor : operatorInAudit(operator, actor.organisationId)
    await erasePayload(dependencies, by, param(request, 'eventId'))
    return { status: 204 }
  },
}

const eventKeyBytes = bytesOfCatalogue(({ eventKeys }) => ({ data: eventKeys.map(presentEventKey) }))

const eventKeysRoute: Route = {
  method: 'GET',
  path: '/api/event-keys',
  operationId: 'listEventKeys',
  summary: 'List the event keys with meaning, permission, payload schema and example',
  access: { kind: 'key' },
  responses: { 200: { description: 'The catalogue', schema: EventKeyListSchema } },
  handle: ({ catalogue }) => Promise.resolve({ status: 200, json: eventKeyBytes(catalogue) }),
}

export const eventRoutes: readonly Route[] = [
  publishRoute,
  eventsRoute,
  getRoute,
  erasePayloadRoute,
  eventKeysRoute,
]

/** Returns the event keys that the member may read; null: all, those too that the catalogue has lost. */
function readableKeys(grants: Grants, { eventKeys, permissionFor }: Catalogue): string[] | null {
  if (grants.fullAccess) return null
  const keys = [...eventKeys.map(({ key }) => key), TEST_EVENT_KEY]
  return keys.filter((key) => mayReadPayload(grants, key, permissionFor))
}

/** Checks that the event key exists, and that `data` fits its shape in the catalogue, unless that may take long. */
function eventErrors(
  { event, data }: Readonly<Record<string, unknown>>,
  { catalogue }: ApiDependencies,
): FieldError[] {
  const unknown = eventKeyErrors(catalogue, event, '/event')
  if (typeof event !== 'string' || unknown.length > 0 || data === undefined) return unknown
  return catalogue.isCostly(event, data) ? [] : catalogue.validatePayload(event, data)
}
