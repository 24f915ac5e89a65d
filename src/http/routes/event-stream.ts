import { requireKey } from '../../accounts/require-key.ts'
import { requirePermissions } from '../../accounts/require-permissions.ts'
import { permissionsForSubscription } from '../../domain/permissions.ts'
import { issueTicket } from '../../stream/tickets.ts'
import { routeWithQuery, type Route } from '../route.ts'
import { EventStreamQuerySchema, StreamTicketSchema } from '../schemas/event-stream.ts'
import { requestedEventKeys } from '../validation/requested-event-keys.ts'

const STREAM = '/api/orgs/:orgId/events/stream'

const streamRoute = routeWithQuery({
  method: 'GET',
  path: STREAM,
  operationId: 'streamEvents',
  summary: 'Get events as they are published, over Server-Sent Events',
  description:
    "Each event has its id, its key as the event's name, and on one line the very bytes that webhooks are sent. `position` comes first and every 15 seconds: its id is the place to go on from, whatever the member may see. Needs the permission of each event key that is named. Where the place to go on from is not known any more, one event `gap` says so, and the stream goes on from now. It ends within a minute when the key or what its member may see changes. Where the key has as many streams open as it may have, the answer is 429 `too_many_streams`.",
  access: { kind: 'organisation', permission: null, ticket: true },
  query: EventStreamQuerySchema,
  fromHeaders: { 'last-event-id': 'lastEventId' },
  responses: {
    200: { description: 'Events, without an end', stream: true },
    429: {
      description: 'Too many requests with this key or from this address, or too many streams with this key',
      headers: { 'Retry-After': 'Seconds to wait' },
      problem: ['rate_limited', 'too_many_streams'],
    },
    503: {
      description: 'No stream can be opened for now; see Retry-After',
      headers: { 'Retry-After': 'Seconds to wait' },
      problem: ['no_stream_now', 'unavailable', 'too_many_connections'],
    },
  },
  handle({ streams, catalogue }, { actor, query }) {
    const requested = requestedEventKeys(query.events, catalogue)
    requirePermissions(actor, permissionsForSubscription(requested ?? [], catalogue.permissionFor))
    const lastEventId = query.lastEventId ?? null
    const caller = requireKey(actor)
    const { requestId } = actor
    const stream = () => streams.open({ caller, requested, lastEventId, requestId })
    return Promise.resolve({ status: 200, stream })
  },
})

const ticketRoute: Route = {
  method: 'POST',
  path: `${STREAM}-tickets`,
  operationId: 'createStreamTicket',
  summary: 'Get a ticket that opens one stream, for a browser',
  description:
    'For `EventSource`, which cannot send a header, so that no key is in a URL. It counts for 30 seconds and for one request, which then has the rights of the key that asked for it. A session that a portal link opened has no key, and gets 403 `needs_api_key`.',
  access: { kind: 'organisation', permission: null },
  responses: {
    201: {
      description: 'The ticket; it is shown this once',
      schema: StreamTicketSchema,
      links: { streamEvents: { ticket: '$response.body#/ticket' } },
    },
  },
  async handle(dependencies, { actor }) {
    const { ticket, expiresAt } = await issueTicket(dependencies, requireKey(actor))
    return { status: 201, body: { ticket, expiresAt: expiresAt.toISOString() } }
  },
}

export const eventStreamRoutes: readonly Route[] = [streamRoute, ticketRoute]
