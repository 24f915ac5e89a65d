import { Type, type Static } from 'typebox'
import { RETRY_MODES, type DeliveryFilter, type DeliverySelection } from '../../domain/delivery-filter.ts'
import { UUID_PATTERN } from '../../ids.ts'
import type { FieldError } from '../../problem-error.ts'
import { EXAMPLE_IDS, id, timestamp, orNull } from './common.ts'
import { DeliveryFilterSchema } from './delivery.ts'
import { replaced } from '../openapi/components.ts'

const deliveryIds = Type.Array(
  Type.String({
    title: 'DeliveryId',
    pattern: UUID_PATTERN,
    examples: [EXAMPLE_IDS.delivery],
    documented: { format: 'uuid' },
  }),
  {
    title: 'DeliveryIds',
    minItems: 1,
    maxItems: 100,
    uniqueItems: true,
    description: 'These deliveries only; those that are not in a state for it are left alone',
  },
)

/** Bytes of a body that selects deliveries: enough for a hundred ids. */
export const MAX_SELECTION_BYTES = 8 * 1024

export const STATE_CONFLICT = 'Not possible in this state; see `code`'
export const PAYLOAD_ERASED = 'The payload of the event is erased'

/** Documents one schema for each set of members that belong together. */
function oneOf(...variants: object[]) {
  return replaced({ oneOf: variants })
}

function variant(title: string, properties: object, required = Object.keys(properties)) {
  return { type: 'object', title, properties, required, additionalProperties: false }
}

const retried = {
  mode: Type.Enum([...RETRY_MODES], {
    description:
      '`failed`: permanently failed deliveries only; `force`: waiting ones too, ignoring their waits; `stopped`: those that were stopped with their webhook or subscription after an attempt go on with their schedule, discarded ones are left alone; `undelivered`: waiting, permanently failed and stopped ones whatever the reason, only with `deliveryIds` or `filter`',
  }),
  id: Type.Optional(
    Type.String({
      title: 'WebhookId',
      description: 'Limits the job to one webhook; without it: all enabled webhooks',
      examples: [EXAMPLE_IDS.webhook],
      documented: { format: 'uuid', pattern: UUID_PATTERN },
    }),
  ),
  deliveryIds: Type.Optional(deliveryIds),
  filter: Type.Optional(DeliveryFilterSchema),
}

/** Of a whole webhook, or of all: without the mode that takes no less than a selection. */
const wholeMode = { ...retried.mode, enum: RETRY_MODES.filter((name) => name !== 'undelivered') }

/** Body of retry-deliveries (spec 4.2). */
export const RetryDeliveriesSchema = Type.Object(retried, {
  additionalProperties: false,
  title: 'RetryDeliveries',
  documented: oneOf(
    variant('RetryAllDeliveries', { mode: wholeMode, id: retried.id }, ['mode']),
    variant('RetryNamedDeliveries', { mode: retried.mode, id: retried.id, deliveryIds: retried.deliveryIds }),
    variant('RetryFilteredDeliveries', { mode: retried.mode, id: retried.id, filter: retried.filter }),
  ),
})

export const RetryJobSchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.retryJob),
    mode: Type.Enum([...RETRY_MODES]),
    webhookId: orNull(id(EXAMPLE_IDS.webhook), {
      description: 'The webhook it is limited to; null: all that were enabled',
    }),
    createdAt: timestamp('2026-05-04T09:40:00.000Z'),
    state: Type.Enum(['running', 'done']),
    total: Type.Integer({ description: 'Deliveries it covered when it was made', examples: [12] }),
    done: Type.Integer({ description: 'Of these, attempted or no longer in need of it', examples: [7] }),
    succeeded: Type.Integer({
      description: 'Of `done`, completed by the attempt of this job',
      examples: [6],
    }),
    failed: Type.Integer({
      description: 'Of `done`, attempted by this job and not delivered',
      examples: [1],
    }),
  },
  { title: 'RetryJob' },
)

/** Body of test, which may be left out. */
export const TestWebhookSchema = Type.Object(
  {
    eventKey: Type.Optional(
      Type.String({
        maxLength: 100,
        title: 'TestEventKey',
        description: 'Sends the example of this event key instead of a `webhook:test`',
        examples: ['invoice:paid'],
      }),
    ),
  },
  { additionalProperties: false, title: 'TestWebhook' },
)

export const RetryAcceptedSchema = Type.Object(
  { deliveryId: id(EXAMPLE_IDS.delivery) },
  { title: 'AcceptedDelivery' },
)

/** Body of discard: one of the two members. */
export const DiscardDeliveriesSchema = Type.Object(
  { deliveryIds: retried.deliveryIds, filter: retried.filter },
  {
    additionalProperties: false,
    title: 'DiscardDeliveries',
    documented: oneOf(
      variant('DiscardNamedDeliveries', { deliveryIds: retried.deliveryIds }),
      variant('DiscardFilteredDeliveries', { filter: retried.filter }),
    ),
  },
)

export const DiscardedSchema = Type.Object(
  { discarded: Type.Integer({ examples: [3] }) },
  { title: 'Discarded' },
)

/** Parses what deliveries are selected by, in a query or a body. */
export function parseDeliveryFilter(given: Static<typeof DeliveryFilterSchema>): DeliveryFilter {
  const { state, eventKey, statusCode, failureCode } = given
  const dateOf = (text: string | undefined): Date | null => (text === undefined ? null : new Date(text))
  return {
    state: state ?? null,
    eventKey: eventKey ?? null,
    statusCode: statusCode ?? null,
    since: dateOf(given.since),
    until: dateOf(given.until),
    failureCode: failureCode ?? null,
    attemptedSince: dateOf(given.attemptedSince),
    attemptedUntil: dateOf(given.attemptedUntil),
  }
}

/** Parses the deliveries that a body names. */
export function parseDeliverySelection(body: {
  deliveryIds?: string[]
  filter?: Static<typeof DeliveryFilterSchema>
}): DeliverySelection {
  const { deliveryIds, filter } = body
  return {
    deliveryIds: deliveryIds === undefined ? null : [...new Set(deliveryIds.map((id) => id.toLowerCase()))],
    filter: filter === undefined ? null : parseDeliveryFilter(filter),
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Checks that a body names deliveries in exactly one way. */
export function selectionErrors({ deliveryIds, filter }: Fields): FieldError[] {
  if (deliveryIds === undefined && filter === undefined)
    return [{ pointer: '/deliveryIds', code: 'required', detail: 'is required where there is no `filter`' }]
  if (deliveryIds === undefined || filter === undefined) return []
  return [{ pointer: '/filter', code: 'invalid', detail: 'must not be combined with `deliveryIds`' }]
}

/** Checks that a retry job selects deliveries of one webhook only, and that mode `undelivered` selects some. */
export function retrySelectionErrors(fields: Fields): FieldError[] {
  const { mode, id, deliveryIds, filter } = fields
  const selects = deliveryIds !== undefined || filter !== undefined
  if (!selects && mode !== 'undelivered') return []
  return [
    ...selectionErrors(fields),
    ...(id === undefined
      ? [{ pointer: '/id', code: 'required', detail: 'is required with a selection' } as const]
      : []),
  ]
}
