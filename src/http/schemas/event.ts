import { Type } from 'typebox'
import { EnvelopeSchema, IdSchema, orNull, TimestampSchema } from './common.ts'
import { DeliverySchema } from './delivery.ts'

/** Latest instant a JavaScript date can hold. */
const MAX_TIMESTAMP_MS = 8_640_000_000_000_000

/** Visible ASCII: it goes into a text column and into logs. */
const token = (description: string) =>
  Type.String({ minLength: 1, maxLength: 128, pattern: '^[\\x21-\\x7e]+$', description })

/** Text without NUL, which PostgreSQL does not store. */
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: '^[^\\u0000]*$' })

/** One schema with two types, not a union of two: its errors name the field at fault and nothing else. */
const TriggeredBySchema = Type.Unsafe<{ id: string; name: string } | null>({
  ...Type.Object({ id: text(200), name: text(500) }, { additionalProperties: false }),
  type: ['object', 'null'],
  description: 'Who performed the action; null for system actions',
})

/** Body of publish: the envelope (spec 2.2) before it is completed. */
export const PublishEventSchema = Type.Object(
  {
    event: Type.String({ maxLength: 100, description: 'Event key' }),
    data: Type.Object({}, { description: 'Kept token by token as it is written' }),
    timestamp: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_TIMESTAMP_MS,
        description: 'Unix ms of emission; default: now',
      }),
    ),
    traceId: Type.Optional(token('Trace of the originating action; generated where none is given')),
    spanId: Type.Optional(token('Span inside that trace')),
    triggeredBy: Type.Optional(TriggeredBySchema),
  },
  { additionalProperties: false },
)

export const PublishedSchema = Type.Object({
  id: IdSchema,
  deliveries: Type.Array(Type.Object({ id: IdSchema, webhookId: IdSchema })),
})

export const EventSchema = Type.Object({
  id: IdSchema,
  eventKey: Type.String(),
  createdAt: TimestampSchema,
  payload: EnvelopeSchema,
  deliveries: Type.Array(DeliverySchema),
})

export const EventKeyListSchema = Type.Object({
  data: Type.Array(
    Type.Object({
      key: Type.String(),
      meaning: Type.String(),
      permission: Type.String(),
      subscribable: Type.Boolean(),
      schema: orNull(Type.Object({})),
      example: Type.Object({}),
    }),
  ),
})
