import { Type } from 'typebox'
import { FAILURE_CODES } from '../../domain/attempt-outcome.ts'
import { DELIVERY_STATES } from '../../domain/delivery-state.ts'
import { EnvelopeSchema, IdSchema, orNull, TimestampSchema } from './common.ts'

const OutcomeSchema = Type.Enum(['succeeded', 'failed'])
const StatusCodeSchema = orNull(Type.Integer({ description: 'What the endpoint answered' }))
const ErrorSchema = orNull(Type.String({ description: 'What went wrong, in words' }))

/** Query of the delivery list. */
export const DeliveryQuerySchema = Type.Object(
  {
    state: Type.Optional(Type.Enum([...DELIVERY_STATES])),
    eventKey: Type.Optional(
      Type.String({ maxLength: 100, pattern: '^[\\x21-\\x7e]+$', description: 'Event key' }),
    ),
    since: Type.Optional(
      Type.String({ format: 'date-time', description: 'Deliveries created at that time or later' }),
    ),
    until: Type.Optional(
      Type.String({ format: 'date-time', description: 'Deliveries created before that time' }),
    ),
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Deliveries per page' }),
    cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before' })),
  },
  { additionalProperties: false },
)

export const DeliverySchema = Type.Object({
  id: IdSchema,
  webhookId: IdSchema,
  eventId: IdSchema,
  eventKey: Type.String(),
  state: Type.Enum([...DELIVERY_STATES]),
  attemptCount: Type.Integer(),
  nextAttemptAt: orNull(TimestampSchema),
  createdAt: TimestampSchema,
  completedAt: orNull(TimestampSchema),
})

export const DeliveryListSchema = Type.Object({
  data: Type.Array(DeliverySchema),
  nextCursor: orNull(Type.String({ description: 'For the next page; null on the last' })),
})

const ResponseSchema = Type.Object(
  {
    headers: Type.Record(Type.String(), Type.String()),
    body: Type.String(),
    truncated: Type.Boolean({ description: 'The body was longer than is kept' }),
  },
  { description: "The endpoint's answer" },
)

const AttemptSchema = Type.Object({
  number: Type.Integer({ minimum: 1 }),
  trigger: Type.Enum(['schedule', 'retry'], { description: "The schedule's turn, or a person's retry" }),
  url: Type.String({
    description: "The webhook's URL at the time; shortened for a member who may not change the webhook",
  }),
  startedAt: TimestampSchema,
  durationMs: Type.Integer(),
  outcome: OutcomeSchema,
  failureCode: orNull(Type.Enum([...FAILURE_CODES])),
  statusCode: StatusCodeSchema,
  error: ErrorSchema,
  response: orNull(ResponseSchema),
})

export const DeliveryDetailSchema = Type.Object({
  ...DeliverySchema.properties,
  payload: EnvelopeSchema,
  attempts: Type.Array(AttemptSchema, { description: 'In the order of their numbers' }),
})

export const LatestAttemptSchema = Type.Object({
  deliveryId: IdSchema,
  eventKey: Type.String(),
  number: Type.Integer({ minimum: 1 }),
  attemptedAt: TimestampSchema,
  outcome: OutcomeSchema,
  statusCode: StatusCodeSchema,
  error: ErrorSchema,
  payload: orNull(EnvelopeSchema, {
    description: "null for a member without the event key's permission",
  }),
})

/** What `stopped` counts. */
export const STOPPED = 'Stopped with their webhook or subscription, or discarded'

export const DeliveryStatsSchema = Type.Object({
  data: Type.Array(
    Type.Object({
      webhookId: IdSchema,
      waitingForRetry: Type.Integer(),
      permanentlyFailed: Type.Integer(),
      stopped: Type.Integer({ description: STOPPED }),
      latestAttempt: orNull(LatestAttemptSchema),
    }),
    { description: 'One row per webhook, oldest webhook first' },
  ),
})
