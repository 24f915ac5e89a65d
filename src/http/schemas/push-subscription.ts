import { Type } from 'typebox'
import { EXAMPLE_IDS, id, timestamp, orNull, URL_FORM } from './common.ts'

const ENDPOINT = {
  maxLength: 2048,
  description: 'HTTPS URL of the push service',
  examples: ['https://push.example.com/send/f81c2a'],
}

// RFC 8291, appendix A.
const PUBLIC_KEY = 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'

const PushKeysSchema = Type.Object(
  {
    p256dh: Type.String({
      title: 'PushPublicKey',
      maxLength: 88,
      description:
        "The browser's P-256 public key: 65 bytes as base64url. 65 bytes that are no point of the curve get 422 `invalid_public_key`",
      examples: [PUBLIC_KEY],
      // What no pattern can say has the name of a format, which tools can be taught.
      documented: {
        format: 'p256-public-key',
        pattern: '^B[A-P][A-Za-z0-9_-]{84}[AEIMQUYcgkosw048]=?$',
      },
    }),
    auth: Type.String({
      title: 'PushAuthSecret',
      maxLength: 24,
      description: 'The shared secret: 16 bytes as base64url',
      examples: ['BTBZMqHH6r4Tts7J_aSIgg'],
      documented: { pattern: '^[A-Za-z0-9_-]{21}[AQgw](==)?$' },
    }),
  },
  { additionalProperties: false, title: 'PushKeys' },
)

/** Body of subscribe: what a browser's `PushSubscription.toJSON()` gives (W3C Push API). */
export const CreatePushSubscriptionSchema = Type.Object(
  {
    endpoint: Type.String({ ...ENDPOINT, title: 'PushEndpoint', documented: URL_FORM }),
    // One schema with two types: the errors of a union name a field once per member.
    expirationTime: Type.Optional(
      Type.Unsafe<number | null>({
        type: ['number', 'null'],
        description: 'Not kept: a push service says itself when a subscription is over',
        examples: [null],
      }),
    ),
    keys: PushKeysSchema,
  },
  { additionalProperties: false, title: 'CreatePushSubscription' },
)

export const PushSubscriptionSchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.pushSubscription),
    endpoint: Type.String(ENDPOINT),
    createdAt: timestamp('2026-05-04T08:05:00.000Z'),
  },
  { title: 'PushSubscription' },
)

export const PushSubscriptionListSchema = Type.Object(
  {
    data: Type.Array(PushSubscriptionSchema),
    pushEnabled: Type.Boolean({
      description:
        'False where no push messages are sent to the member; set by the operator or the seed file',
    }),
    vapidPublicKey: orNull(Type.String({ examples: [PUBLIC_KEY] }), {
      description:
        '`applicationServerKey` for the browser (RFC 8292, base64url); null where push is not set up',
    }),
  },
  { title: 'PushSubscriptionList' },
)
