import { Type } from 'typebox'
import { IdSchema, orNull, TimestampSchema } from './common.ts'

const endpoint = Type.String({ maxLength: 2048, description: 'HTTPS URL of the push service' })

/** Body of subscribe: what a browser's `PushSubscription.toJSON()` gives (W3C Push API). */
export const CreatePushSubscriptionSchema = Type.Object(
  {
    endpoint,
    // One schema with two types, as in an event: a union would name the fault once for each of them.
    expirationTime: Type.Optional(
      Type.Unsafe<number | null>({
        type: ['number', 'null'],
        description: 'Not kept: a push service says itself when a subscription is over',
      }),
    ),
    keys: Type.Object(
      {
        p256dh: Type.String({
          maxLength: 88,
          description: "The browser's P-256 public key: 65 bytes as base64url",
        }),
        auth: Type.String({ maxLength: 24, description: 'The shared secret: 16 bytes as base64url' }),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

export const PushSubscriptionSchema = Type.Object({ id: IdSchema, endpoint, createdAt: TimestampSchema })

export const PushSubscriptionListSchema = Type.Object({
  data: Type.Array(PushSubscriptionSchema),
  vapidPublicKey: orNull(Type.String(), {
    description:
      '`applicationServerKey` for the browser (RFC 8292, base64url); null where push is not set up',
  }),
})
