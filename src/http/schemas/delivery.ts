import { Type } from 'typebox'
import { FAILURE_CODES, FAILURE_TEXTS } from '../../domain/attempt-outcome.ts'
import { DELIVERY_STATES, STOP_REASONS } from '../../domain/delivery-state.ts'
import { VISIBLE_ASCII_PATTERN } from '../../domain/text-rules.ts'
import { EXAMPLE_IDS, id, timestamp, orNull, EnvelopeSchema } from './common.ts'

const eventKey = Type.String({ description: 'Event key', examples: ['invoice:paid'] })
const outcome = Type.Enum(['succeeded', 'failed'], { examples: ['failed'] })
const statusCode = orNull(Type.Integer({ examples: [503] }), { description: 'What the endpoint answered' })
const errorText = Type.String({ examples: ['The endpoint answered 503 Service Unavailable.'] })
export const error = orNull(errorText, {
  description: "What went wrong, in Posthorn's words; null for a success",
})

/** One schema, since it is a named one of the document. */
export const FAILURE_CODE = Type.Enum(FAILURE_CODES, {
  title: 'FailureCode',
  documented: {
    'x-enum-descriptions': Object.fromEntries(
      Object.entries(FAILURE_TEXTS).map(([code, { cause, cure }]) => [code, `${cause} ${cure}`]),
    ),
  },
})

/** What deliveries are selected by; each member is optional. */
export const DeliveryFilterSchema = Type.Object(
  {
    state: Type.Optional(Type.Enum([...DELIVERY_STATES])),
    eventKey: Type.Optional(
      Type.String({
        maxLength: 100,
        pattern: VISIBLE_ASCII_PATTERN,
        description: 'Event key',
        examples: ['invoice:paid'],
      }),
    ),
    statusCode: Type.Optional(
      Type.Integer({
        minimum: 100,
        maximum: 599,
        description: 'What the endpoint answered to the latest attempt',
        examples: [503],
      }),
    ),
    since: Type.Optional(timestamp('2026-05-04T00:00:00.000Z', 'Deliveries created at that time or later')),
    until: Type.Optional(timestamp('2026-05-05T00:00:00.000Z', 'Deliveries created before that time')),
    failureCode: Type.Optional(FAILURE_CODE),
    attemptedSince: Type.Optional(
      timestamp(
        '2026-05-04T00:00:00.000Z',
        'Deliveries with an attempt that began at that time or later, and that failed with `failureCode` where that is given',
      ),
    ),
    attemptedUntil: Type.Optional(
      timestamp('2026-05-05T00:00:00.000Z', 'Deliveries with an attempt that began before that time'),
    ),
  },
  {
    additionalProperties: false,
    minProperties: 1,
    title: 'DeliveryFilter',
    description: 'Deliveries that fit every member given',
  },
)

/** What a list is searched for. */
export const searched = (description: string) =>
  Type.String({
    maxLength: 128,
    pattern: VISIBLE_ASCII_PATTERN,
    description,
    examples: [EXAMPLE_IDS.event],
  })

/** What the list of deliveries is filtered by. */
export const DeliveryListFilterSchema = Type.Object({
  ...DeliveryFilterSchema.properties,
  search: Type.Optional(
    searched(
      'Exactly the id of a delivery, of its event, or a trace id; of a trace, the newest 1,000 events are searched',
    ),
  ),
})

/** Members of an attempt that a summary of it has too. */
export const ATTEMPT_SUMMARY = {
  number: Type.Integer({ minimum: 1 }),
  startedAt: timestamp('2026-05-04T09:02:12.301Z'),
  durationMs: Type.Integer({ examples: [211] }),
  outcome,
  failureCode: orNull(FAILURE_CODE),
  statusCode,
}

const AttemptSummarySchema = Type.Object(
  {
    ...ATTEMPT_SUMMARY,
    error: orNull(errorText, {
      description:
        "What went wrong, in Posthorn's words; null for a success, and for a member without `webhook:read`",
    }),
  },
  { title: 'AttemptSummary', description: 'What an attempt brought' },
)

export const DeliverySchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.delivery),
    webhookId: id(EXAMPLE_IDS.webhook),
    eventId: id(EXAMPLE_IDS.event),
    eventKey,
    traceId: Type.String({
      description: 'Trace of its event',
      examples: ['6c42567ab0f8157384bcb87bd270b3cb'],
    }),
    isTest: Type.Boolean({
      description: 'It is of a test event, which is attempted once and cannot be retried',
      examples: [false],
    }),
    state: Type.Enum([...DELIVERY_STATES], { title: 'DeliveryState', examples: ['waiting'] }),
    stopReason: orNull(Type.Enum([...STOP_REASONS], { title: 'StopReason' }), {
      description:
        'Why it is stopped: its webhook was disabled or deleted, its event key removed from the subscription, a user discarded it, it is a test event that failed, or its payload was erased',
      examples: [null],
    }),
    attemptCount: Type.Integer({ examples: [1] }),
    nextAttemptAt: orNull(timestamp('2026-05-04T09:02:13.512Z')),
    pausedSince: orNull(timestamp('2026-05-04T09:02:12.900Z'), {
      description:
        'Since when an operator has paused its workflow in Temporal, seen at most 15 s after the attempt was due, or a minute where the last one timed out; null otherwise. No attempt is made until it is unpaused',
      examples: [null],
    }),
    createdAt: timestamp('2026-05-04T09:02:11.204Z'),
    completedAt: orNull(timestamp('2026-05-04T09:02:13.731Z'), { examples: [null] }),
    latestAttempt: orNull(AttemptSummarySchema, { description: 'The last recorded attempt' }),
  },
  { title: 'Delivery', description: 'One event on its way to one webhook' },
)

/** Query of the newest deliveries of all webhooks. */
export const RecentDeliveryQuerySchema = Type.Object(
  {
    state: DeliveryFilterSchema.properties.state,
    eventKey: DeliveryFilterSchema.properties.eventKey,
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Deliveries in the answer' }),
  },
  { additionalProperties: false },
)

export const RecentDeliveriesSchema = Type.Object(
  { data: Type.Array(DeliverySchema) },
  { title: 'RecentDeliveries' },
)

export const LatestAttemptSchema = Type.Object(
  {
    deliveryId: id(EXAMPLE_IDS.delivery),
    eventKey,
    number: Type.Integer({ minimum: 1 }),
    attemptedAt: timestamp('2026-05-04T09:02:12.301Z'),
    outcome,
    statusCode,
    error,
    payload: orNull(EnvelopeSchema, {
      description: "null for a member without the event key's permission, and once it is erased",
    }),
  },
  { title: 'LatestAttempt' },
)

/** Describes the count `stopped`. */
export const STOPPED = 'Stopped with their webhook or subscription, or discarded'

/** Members of statistics: what was accepted and not attempted yet. */
export const WAITING_FIRST_ATTEMPTS = {
  waitingForFirstAttempt: Type.Integer({
    description: 'Accepted, and not attempted yet; test events do not count',
    examples: [4],
  }),
  oldestWaitingForFirstAttemptMs: orNull(Type.Integer({ examples: [850] }), {
    description: 'How long the oldest of these has waited, in ms; null where there is none',
  }),
}

const WebhookStatsSchema = Type.Object(
  {
    webhookId: id(EXAMPLE_IDS.webhook),
    ...WAITING_FIRST_ATTEMPTS,
    waitingForRetry: Type.Integer({ examples: [1] }),
    permanentlyFailed: Type.Integer(),
    stopped: Type.Integer({ description: STOPPED }),
    latestAttempt: orNull(LatestAttemptSchema),
  },
  { title: 'WebhookStats' },
)

export const DeliveryStatsSchema = Type.Object(
  { data: Type.Array(WebhookStatsSchema, { description: 'One row per webhook, oldest webhook first' }) },
  { title: 'DeliveryStats' },
)
