import { Type } from 'typebox'
import { PLAIN_TEXT_PATTERN, PLAIN_TEXT_RULE } from '../../domain/text-rules.ts'
import { EXAMPLE_IDS, id, timestamp, orNull, URL_FORM } from './common.ts'

const URL_EXAMPLE = 'https://hooks.example.com/posthorn'

const url = Type.String({
  title: 'WebhookUrl',
  maxLength: 2048,
  description: 'HTTPS endpoint that accepts POST requests',
  examples: [URL_EXAMPLE],
  documented: URL_FORM,
})

const MAX_DESCRIPTION_LENGTH = 200

const description = Type.String({
  maxLength: MAX_DESCRIPTION_LENGTH,
  pattern: PLAIN_TEXT_PATTERN,
  description: `What users call the webhook, ${PLAIN_TEXT_RULE}`,
  examples: ['Invoices to the accounting'],
})

/** The OpenAPI document describes it by the catalogue. */
const subscription = Type.Array(Type.String({ maxLength: 100 }), {
  title: 'Subscription',
  minItems: 1,
  maxItems: 200,
  uniqueItems: true,
  description: 'Event keys, 200 at most, or ["*"] for all events (full access only)',
})

const enabled = Type.Boolean({ description: 'true switches delivery on' })

/** Body of create (spec 2.1). */
export const CreateWebhookSchema = Type.Object(
  { url, subscribedEventKeys: subscription, enabled, description: Type.Optional(description) },
  { additionalProperties: false, title: 'CreateWebhook' },
)

const MAX_REASON_LENGTH = 500

/** Why an operator holds a webhook: its organisation reads it. */
export const holdReason = Type.String({
  minLength: 1,
  maxLength: MAX_REASON_LENGTH,
  pattern: PLAIN_TEXT_PATTERN,
  description: `Why; the organisation reads it, ${PLAIN_TEXT_RULE}`,
  examples: ['Its endpoint floods ours. Write to support@example.com.'],
})

const OperatorHoldSchema = Type.Object(
  { since: timestamp('2026-05-04T09:30:00.000Z'), reason: holdReason },
  { title: 'OperatorHold' },
)

/** The operator's hold as answers have it. */
export const operatorHold = orNull(OperatorHoldSchema, {
  description:
    'Set while the operator holds the webhook: it is disabled, and `enabled: true` is refused with 409 `webhook_held`',
  examples: [null],
})

/** A field that is compared with its present value, whatever its type. */
const readOnly = (documented: object) =>
  Type.Optional(
    Type.Unknown({
      readOnly: true,
      description: 'Cannot be changed: only its present value is accepted',
      documented,
    }),
  )

/** Body of update: any of the fields, and what else an answer has. */
export const UpdateWebhookSchema = Type.Object(
  {
    ...Type.Partial(CreateWebhookSchema).properties,
    id: readOnly({ type: 'string' }),
    operatorHold: readOnly(operatorHold),
    createdAt: readOnly({ type: 'string' }),
    updatedAt: readOnly({ type: 'string' }),
  },
  { additionalProperties: false, title: 'UpdateWebhook' },
)

export const WebhookSchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.webhook),
    url: Type.String({
      maxLength: 2048,
      description:
        'The endpoint. For a member who may not change the webhook: scheme, host and a shortened path, such as `https://hooks.example.com/services/T0…`, since path and query can be a credential',
      examples: [URL_EXAMPLE],
    }),
    description,
    subscribedEventKeys: Type.Array(Type.String(), {
      description: 'Event keys, or ["*"] for all events',
      examples: [['invoice:paid', 'customer:created']],
    }),
    enabled,
    operatorHold,
    createdAt: timestamp('2026-05-04T08:00:00.000Z'),
    updatedAt: timestamp('2026-05-04T08:00:00.000Z'),
  },
  { title: 'Webhook' },
)

export const SigningSecretSchema = Type.Object(
  {
    signingSecret: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: '64 hexadecimal characters; the key is this text',
      examples: ['6f0b8f0a3d5c4e219a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f'],
    }),
  },
  { title: 'SigningSecret' },
)

export const CreatedWebhookSchema = Type.Object(
  {
    ...WebhookSchema.properties,
    ...SigningSecretSchema.properties,
  },
  { title: 'CreatedWebhook' },
)

export const WebhookListSchema = Type.Object({ data: Type.Array(WebhookSchema) }, { title: 'WebhookList' })
