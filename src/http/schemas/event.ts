import { Type } from 'typebox'
import { NO_NUL_PATTERN, VISIBLE_ASCII_PATTERN } from '../../domain/text-rules.ts'
import {
  EXAMPLE_IDS,
  id,
  timestamp,
  orNull,
  openObject,
  EnvelopeSchema,
  PayloadErasedSchema,
} from './common.ts'
import { DeliveryFilterSchema, DeliverySchema, searched } from './delivery.ts'

/** The latest instant that a `Date` can represent. */
const MAX_TIMESTAMP_MS = 8_640_000_000_000_000

/** Visible ASCII, because it is stored as text and logged. */
const token = (description: string, example: string) =>
  Type.String({
    minLength: 1,
    maxLength: 128,
    pattern: VISIBLE_ASCII_PATTERN,
    description,
    examples: [example],
  })

/** Text without NUL, which PostgreSQL cannot store. */
const text = (maxLength: number, example: string) =>
  Type.String({ minLength: 1, maxLength, pattern: NO_NUL_PATTERN, examples: [example] })

/** One schema with two types, not a union: the errors of a union name a field once per member. */
const triggeredBy = Type.Unsafe<{ id: string; name: string } | null>({
  ...Type.Object({ id: text(200, 'usr_7'), name: text(500, 'An Peeters') }, { additionalProperties: false }),
  type: ['object', 'null'],
  title: 'PublishTriggeredBy',
  description: 'Who performed the action; null for system actions',
})

/**
 * Body of publish: the parts of the envelope (spec 2.2) that the sender gives. The OpenAPI document describes `event`
 * and `data` by the catalogue.
 */
export const PublishEventSchema = Type.Object(
  {
    event: Type.String({ maxLength: 100, description: 'Event key' }),
    data: openObject({ description: 'Kept token by token as it is written' }),
    timestamp: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_TIMESTAMP_MS,
        description: 'Unix ms of emission; default: now',
        examples: [1_777_885_331_000],
      }),
    ),
    traceId: Type.Optional(
      token(
        'Trace of the originating action; generated where none is given',
        '6c42567ab0f8157384bcb87bd270b3cb',
      ),
    ),
    spanId: Type.Optional(token('Span inside that trace', '00f067aa0ba902b7')),
    triggeredBy: Type.Optional(triggeredBy),
  },
  { additionalProperties: false, title: 'PublishEvent' },
)

const NewDeliverySchema = Type.Object(
  { id: id(EXAMPLE_IDS.delivery), webhookId: id(EXAMPLE_IDS.webhook) },
  { title: 'NewDelivery' },
)

export const PublishedSchema = Type.Object(
  { id: id(EXAMPLE_IDS.event), deliveries: Type.Array(NewDeliverySchema) },
  { title: 'PublishedEvent' },
)

export const EventSchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.event),
    eventKey: Type.String({ examples: ['invoice:paid'] }),
    createdAt: timestamp('2026-05-04T09:02:11.204Z'),
    traceId: Type.String({ examples: ['6c42567ab0f8157384bcb87bd270b3cb'] }),
    payloadErased: PayloadErasedSchema,
    payload: orNull(EnvelopeSchema, {
      description: "null for a member without the event key's permission, and once it is erased",
    }),
    deliveries: Type.Array(DeliverySchema, { description: 'The newest 1,000, oldest first' }),
  },
  { title: 'Event' },
)

/** What the list of events is filtered by. */
export const EventFilterSchema = Type.Object({
  eventKey: DeliveryFilterSchema.properties.eventKey,
  since: Type.Optional(timestamp('2026-05-04T00:00:00.000Z', 'Events created at that time or later')),
  until: Type.Optional(timestamp('2026-05-05T00:00:00.000Z', 'Events created before that time')),
  search: Type.Optional(searched('Exactly the id of an event, or a trace id')),
})

const count = Type.Integer({ minimum: 0 })

const DeliveryCountsSchema = Type.Object(
  {
    total: Type.Integer({ minimum: 0, examples: [3] }),
    completed: Type.Integer({ minimum: 0, examples: [2] }),
    waiting: Type.Integer({ minimum: 0, examples: [1] }),
    failed: count,
    stopped: count,
    pending: count,
    inProgress: count,
  },
  { title: 'DeliveryCounts', description: 'The deliveries of an event, by state' },
)

export const EventSummarySchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.event),
    eventKey: Type.String({ examples: ['invoice:paid'] }),
    createdAt: timestamp('2026-05-04T09:02:11.204Z'),
    traceId: Type.String({ examples: ['6c42567ab0f8157384bcb87bd270b3cb'] }),
    isTest: Type.Boolean({
      description: 'It was sent to one webhook, to check the endpoint',
      examples: [false],
    }),
    deliveries: DeliveryCountsSchema,
  },
  { title: 'EventSummary', description: 'An event without its payload' },
)

export const EventKeyEntrySchema = Type.Object(
  {
    key: Type.String({ examples: ['invoice:paid'] }),
    meaning: Type.String({ examples: ['Invoice paid'] }),
    permission: Type.String({ examples: ['invoice:read'] }),
    subscribable: Type.Boolean(),
    schema: orNull(openObject(), {
      description: 'JSON schema of `data`; null where any object will do',
      examples: [{ type: 'object' }],
    }),
    example: openObject({ description: 'An example of `data`' }),
  },
  { title: 'EventKeyEntry' },
)

export const EventKeyListSchema = Type.Object(
  { data: Type.Array(EventKeyEntrySchema) },
  { title: 'EventKeyList' },
)
