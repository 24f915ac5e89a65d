import { EXAMPLE_IDS } from '../schemas/common.ts'
import { referenceTo } from './components.ts'
import type { NamedEvent } from './event-schemas.ts'
import { envelopeExample } from './refinements.ts'

/** The tag of what endpoints receive. */
export const RECEIVED = 'Received events'

/** The headers of each POST to an endpoint. */
export const RECEIVED_PARAMETERS = {
  WebhookEventId: {
    name: 'X-Webhook-Event-ID',
    in: 'header',
    required: true,
    description: 'Id of the delivery; the same on every attempt. Deduplicate on it.',
    schema: { type: 'string', format: 'uuid' },
    example: EXAMPLE_IDS.delivery,
  },
  WebhookSignature: {
    name: 'X-Webhook-Signature',
    in: 'header',
    required: true,
    description:
      '`sha256=` and the HMAC-SHA256 of the raw body, as 64 lower-case hexadecimal digits. The key is the 64 characters of the signing secret as UTF-8 text, not decoded from hexadecimal.',
    schema: { type: 'string', pattern: '^sha256=[0-9a-f]{64}$' },
    example: `sha256=${'0f'.repeat(32)}`,
  },
  WebhookUserAgent: {
    name: 'User-Agent',
    in: 'header',
    required: true,
    description: '`Posthorn/` and the version',
    schema: { type: 'string' },
    example: 'Posthorn/1.0.0',
  },
}

/** The answers of an endpoint. */
export const RECEIVED_RESPONSES = {
  Confirmed: { description: 'Any status from 200 to 299, within 15 seconds: the delivery is completed' },
  NotConfirmed: {
    description:
      'Any other answer, a redirect too, or none: the attempt has failed, and the next follows by the retry schedule',
  },
}

/** Returns the `webhooks` section: what an endpoint receives, by event key. */
export function receivedEvents(events: readonly NamedEvent[]): Record<string, object> {
  const parameters = Object.keys(RECEIVED_PARAMETERS).map((name) => ({
    $ref: `#/components/parameters/${name}`,
  }))
  return Object.fromEntries(
    events.map(({ key, name, meaning, example }) => {
      const content = { schema: referenceTo(`${name}Event`), example: envelopeExample({ key, example }) }
      const post = {
        operationId: `receive${name}`,
        summary: meaning,
        tags: [RECEIVED],
        security: [],
        parameters,
        requestBody: { required: true, content: { 'application/json': content } },
        responses: {
          '2XX': { $ref: '#/components/responses/Confirmed' },
          default: { $ref: '#/components/responses/NotConfirmed' },
        },
      }
      return [key, { post }]
    }),
  )
}
