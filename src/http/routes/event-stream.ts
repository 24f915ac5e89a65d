import { requireKey } from '../../accounts/caller-lookup.ts'
import { issueTicket } from '../../accounts/one-use-tokens.ts'
import { typedRoute, type Route } from '../route.ts'
import { Type } from 'typebox'
import { EXAMPLE_IDS, timestamp } from '../schemas/common.ts'
import type { Catalogue } from '../../catalogue/catalogue.ts'
import { invalidFields, requireSubscriptionRights } from '../../problem-error.ts'
import { selectedKeyErrors } from '../../webhooks/create-webhook.ts'
import type { RequestedEventKeys } from '../../stream/streams.ts'

/** Query of the event stream. */
const EventStreamQuerySchema = Type.Object(
  {
    events: Type.Optional(
      Type.String({
        title: 'EventKeys',
        maxLength: 8_000,
        description:
          'Event keys, separated by commas; `*` alone for all, which needs full access. Without it: every key that the member may see',
        examples: ['invoice:paid,customer:created'],
      }),
    ),
    lastEventId: Type.Optional(
      Type.String({
        description:
          'The last `id` that was received, of an event or of a position; the stream goes on after it, or sends `gap` where the id is unknown. The header counts before it',
        examples: [EXAMPLE_IDS.event],
      }),
    ),
    ticket: Type.Optional(
      Type.String({ maxLength: 100, description: 'A ticket in the place of the API key, for one request' }),
    ),
  },
  { additionalProperties: false },
)

const StreamTicketSchema = Type.Object(
  {
    ticket: Type.String({
      description: 'For the parameter `ticket` of the stream, once',
      examples: ['kT9w1qgJX0q2b7V5n8R3mZ4cYdLhUeAfSgPjQiOkWtE'],
    }),
    expiresAt: timestamp('2026-05-04T09:02:41.204Z'),
  },
  { title: 'StreamTicket' },
)

const STREAM = '/api/orgs/:orgId/events/stream'

const streamRoute = typedRoute({
  method: 'GET',
  path: STREAM,
  operationId: 'streamEvents',
  summary: 'Get events as they are published, over Server-Sent Events',
  description:
    "Each event has its id, its key as the event's name, and on one line the very bytes that webhooks are sent. `position` comes first and every 15 seconds: its id is the place to go on from, whatever the member may see. Needs the permission of each event key that is named. An event whose payload was erased comes as `payload_erased`, with its id and its key only. Where the place to go on from is not known any more, one event `gap` says so, and the stream goes on from now. It ends within seconds when the key is revoked or what its member may see changes. Where the organisation has as many streams open in this process as it may have, the answer is 429 `too_many_streams`.",
  access: { kind: 'organisation', permission: null, ticket: true },
  query: EventStreamQuerySchema,
  fromHeaders: { 'last-event-id': 'lastEventId' },
  responses: {
    200: { description: 'Events, without an end', stream: true },
    429: {
      description:
        'Too many requests with this key or from this address, or too many streams of the organisation',
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
    requireSubscriptionRights(catalogue, actor, requested ?? [])
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
    403: {
      description: 'The session has no key, or is used from a page of another origin',
      problem: ['needs_api_key', 'cross_site'],
    },
  },
  async handle(dependencies, { actor }) {
    const { ticket, expiresAt } = await issueTicket(dependencies, requireKey(actor))
    return { status: 201, body: { ticket, expiresAt: expiresAt.toISOString() } }
  },
}

export const eventStreamRoutes: readonly Route[] = [streamRoute, ticketRoute]

/** Parses the parameter `events` into unique event keys; null without it. Throws 422 naming every wrong one. */
function requestedEventKeys(text: string | undefined, catalogue: Catalogue): RequestedEventKeys {
  if (text === undefined) return null
  const keys = [...new Set(text.split(',').map((key) => key.trim()))]
  const errors = keys.flatMap((key) => selectedKeyErrors(key, keys.length, '/events', catalogue))
  if (errors.length > 0) throw invalidFields(errors)
  return keys
}
