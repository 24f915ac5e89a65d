import { Type } from 'typebox'
import { IdSchema, TimestampSchema } from './common.ts'

const url = Type.String({ maxLength: 2048, description: 'HTTPS endpoint that accepts POST requests' })

const subscribedEventKeys = Type.Array(Type.String({ maxLength: 100 }), {
  minItems: 1,
  maxItems: 200,
  uniqueItems: true,
  description: 'Event keys, 200 at most, or ["*"] for all events (full access only)',
})

const enabled = Type.Boolean({ description: 'true switches delivery on' })

/** Body of create (spec 2.1). */
export const CreateWebhookSchema = Type.Object(
  { url, subscribedEventKeys, enabled },
  { additionalProperties: false },
)

/** Body of update: any part of a webhook. */
export const UpdateWebhookSchema = Type.Partial(CreateWebhookSchema, {
  additionalProperties: false,
  minProperties: 1,
})

export const WebhookSchema = Type.Object({
  id: IdSchema,
  url: Type.String({
    maxLength: 2048,
    description:
      'The endpoint. For a member who may not change the webhook: scheme, host and a shortened path, such as `https://hooks.example.com/services/T0…`, since path and query can be a credential',
  }),
  subscribedEventKeys,
  enabled,
  createdAt: TimestampSchema,
  updatedAt: TimestampSchema,
})

export const SigningSecretSchema = Type.Object({
  signingSecret: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description: '64 hexadecimal characters; the key is this text',
  }),
})

export const CreatedWebhookSchema = Type.Object({
  ...WebhookSchema.properties,
  ...SigningSecretSchema.properties,
})

export const WebhookListSchema = Type.Object({ data: Type.Array(WebhookSchema) })
