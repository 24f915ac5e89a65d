import { eventKeys, isPublishable } from '../../catalogue/catalogue.ts'
import { listDeliveriesOfEvent } from '../../db/queries/deliveries.ts'
import { findEvent } from '../../db/queries/events.ts'
import { EVENT_PUBLISH, missingPermissions, permissionForEventKey } from '../../domain/permissions.ts'
import { notFound, type FieldError } from '../../errors.ts'
import type { ApiDependencies } from '../api.ts'
import { requirePermissions } from '../guard.ts'
import { presentEvent, presentEventKey } from '../present.ts'
import { param, routeWithBody, type Route } from '../route.ts'
import { EventKeyListSchema, EventSchema, PublishedSchema, PublishEventSchema } from '../schemas/event.ts'

/** The largest event; a receiver should not have to expect more. */
const MAX_EVENT_BYTES = 256 * 1024

const publishRoute = routeWithBody({
  method: 'POST',
  path: '/api/orgs/:orgId/events',
  operationId: 'publishEvent',
  summary: 'Publish an event',
  description: 'Answered once the event and its deliveries are committed: from then on nothing is lost.',
  access: { kind: 'organisation', permission: EVENT_PUBLISH },
  limit: 'publish',
  body: { schema: PublishEventSchema, maxBytes: MAX_EVENT_BYTES, rules: eventErrors },
  idempotent: true,
  responses: {
    202: { description: 'Committed', schema: PublishedSchema },
    503: {
      description:
        'The database cannot be reached (`unavailable`), or too many deliveries wait for their first attempt (`overloaded`); see Retry-After',
      headers: { 'Retry-After': 'Seconds to wait' },
      problem: true,
    },
  },
  async handle({ publish, dispatcher, metrics }, { caller, body, bodyText, idempotency }) {
    const request = {
      organisationId: caller.organisationId,
      event: body.event,
      json: bodyText,
      timestamp: body.timestamp ?? null,
      traceId: body.traceId ?? null,
      spanId: body.spanId ?? null,
      triggeredBy: body.triggeredBy ?? null,
    }
    const { id, deliveries, toStart, replayed } = await publish(request, idempotency)
    if (!replayed) metrics.eventPublished(deliveries.length)
    dispatcher.start(toStart)
    return { status: 202, body: { id, deliveries } }
  },
})

const getRoute: Route = {
  method: 'GET',
  path: '/api/orgs/:orgId/events/:eventId',
  operationId: 'getEvent',
  summary: 'Get an event and the states of its deliveries',
  description: "Needs `event:publish` or the event key's own permission.",
  access: { kind: 'organisation', permission: null },
  responses: { 200: { description: 'The event', schema: EventSchema } },
  async handle({ dataSource }, request) {
    const { caller } = request
    const event = await findEvent(dataSource, caller.organisationId, param(request, 'eventId'))
    if (event === null) throw notFound('event')
    if (missingPermissions(caller, [EVENT_PUBLISH]).length > 0)
      requirePermissions(caller, [permissionForEventKey(event.key)])
    const deliveries = await listDeliveriesOfEvent(dataSource, caller.organisationId, event.id)
    return { status: 200, json: presentEvent(event, deliveries) }
  },
}

const eventKeysRoute: Route = {
  method: 'GET',
  path: '/api/event-keys',
  operationId: 'listEventKeys',
  summary: 'List the event keys with meaning, permission, payload schema and example',
  access: { kind: 'key' },
  responses: { 200: { description: 'The catalogue', schema: EventKeyListSchema } },
  handle: () => Promise.resolve({ status: 200, body: { data: eventKeys.map(presentEventKey) } }),
}

export const eventRoutes: readonly Route[] = [publishRoute, getRoute, eventKeysRoute]

/** The event key must exist, and `data` must fit the shape that the catalogue gives for it. */
function eventErrors(
  { event, data }: Readonly<Record<string, unknown>>,
  { validatePayload }: ApiDependencies,
): FieldError[] {
  if (typeof event !== 'string') return []
  if (isPublishable(event)) return data === undefined ? [] : validatePayload(event, data)
  return [{ pointer: '/event', code: 'unknown_event_key', detail: 'There is no such event key.' }]
}
