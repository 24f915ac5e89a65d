import { Type } from 'typebox'
import { EXAMPLE_IDS, orNull, textMap, EnvelopeSchema, PayloadErasedSchema } from './common.ts'
import { ATTEMPT_SUMMARY, DeliverySchema, error } from './delivery.ts'

const EndpointAnswerSchema = Type.Object(
  {
    headers: textMap({ examples: [{ 'content-type': 'text/plain' }] }),
    body: Type.String({ examples: ['try later'] }),
    truncated: Type.Boolean({ description: 'The body was longer than is kept', examples: [false] }),
  },
  { title: 'EndpointAnswer', description: "The endpoint's answer" },
)

export const AttemptSchema = Type.Object(
  {
    ...ATTEMPT_SUMMARY,
    trigger: Type.Enum(['schedule', 'retry'], {
      description: '`schedule`: by the retry schedule; `retry`: because a user asked for it',
    }),
    url: Type.String({
      description: "The webhook's URL at the time; shortened for a member who may not change the webhook",
      examples: ['https://hooks.example.com/posthorn'],
    }),
    error,
    response: orNull(EndpointAnswerSchema, {
      description: 'null where no answer came, or the payload was erased',
    }),
  },
  { title: 'Attempt', description: 'One POST to the endpoint' },
)

const FirstAttemptQueueSchema = Type.Object(
  {
    before: Type.Integer({
      description:
        'Deliveries of the webhook that were accepted before it and wait like it; counted up to 10,000',
      examples: [166],
    }),
    isEndpointSlow: Type.Boolean({
      description: 'An attempt to the endpoint took a second or more within the last five minutes',
      examples: [true],
    }),
  },
  { title: 'FirstAttemptQueue' },
)

export const DeliveryDetailSchema = Type.Object(
  {
    ...DeliverySchema.properties,
    queue: orNull(FirstAttemptQueueSchema, {
      description: 'What a `pending` delivery waits for; null in every other state',
      examples: [null],
    }),
    requestHeaders: textMap({
      description:
        'The headers of an attempt that is made now, without its signature; none once the payload is erased',
      examples: [
        {
          'User-Agent': 'Posthorn/1.0.0',
          'Content-Type': 'application/json',
          'Content-Length': '412',
          'X-Webhook-Event-ID': EXAMPLE_IDS.delivery,
        },
      ],
    }),
    payloadErased: PayloadErasedSchema,
    payload: orNull(EnvelopeSchema, { description: 'null once it is erased' }),
    attempts: Type.Array(AttemptSchema, {
      description: 'The latest 100 in the order of their numbers; `attemptCount` says how many there were',
    }),
  },
  { title: 'DeliveryDetail', description: 'A delivery with its payload and its attempts' },
)

export const DeliveryRequestSchema = Type.Object(
  {
    method: Type.Enum(['POST']),
    url: Type.String({
      description: "The webhook's URL as it is now",
      examples: ['https://hooks.example.com/posthorn'],
    }),
    headers: textMap({
      description: 'The headers of every attempt, with the signature of the body',
      examples: [
        {
          'Content-Type': 'application/json',
          'X-Webhook-Event-ID': EXAMPLE_IDS.delivery,
          'X-Webhook-Signature': 'sha256=5f2e0b8a91c4d7f36e1a0c9b8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e',
        },
      ],
    }),
    body: Type.String({
      description: 'The envelope, byte for byte as it is sent',
      examples: ['{"event":"invoice:paid","data":{}}'],
    }),
  },
  { title: 'DeliveryRequest', description: 'The request that delivers an event' },
)
