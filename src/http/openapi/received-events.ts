import type { EventKeyEntry } from '../../catalogue/catalogue.ts'
import { TEST_EVENT_KEY } from '../../domain/permissions.ts'
import { EXAMPLE_IDS, ENVELOPE_FIELDS, EnvelopeSchema } from '../schemas/common.ts'
import { isObject } from '../../json-schema/count-checks.ts'
import { mapSubschemas } from '../../json-schema/slow-keywords.ts'
import { referenceTo, type Components, type JsonSchema } from './components.ts'

/** An event key with the names of its schemas: `InvoicePaidEvent`, `InvoicePaidData`. */
export type NamedEvent = {
  key: string
  name: string
  meaning: string
  schema: object | null
  example: object
}

/** The payload of a key without a schema. */
const ANY_DATA = 'AnyData'

/** Titles of other schemas of the document that an event key could yield. */
const TAKEN_NAMES = ['PublishTriggeredBy', 'PublishOtherEvent']

/** Returns the events of the catalogue and the test event, each with a name of its own. */
export function namedEvents(catalogue: readonly EventKeyEntry[]): NamedEvent[] {
  const test = {
    key: TEST_EVENT_KEY,
    meaning: 'Test event that a user sent to this webhook',
    schema: {
      type: 'object',
      properties: { webhookId: { type: 'string', format: 'uuid' } },
      required: ['webhookId'],
    },
    example: { webhookId: EXAMPLE_IDS.webhook },
  }
  const taken = new Set(TAKEN_NAMES)
  return [...catalogue, test].map(({ key, meaning, schema, example }) => {
    const plain = key.replaceAll(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9]?)/g, (_, first: string) =>
      first.toUpperCase(),
    )
    let name = plain
    for (let number = 2; schemaNames(name).some((one) => taken.has(one)); number++) name = `${plain}${number}`
    for (const one of schemaNames(name)) taken.add(one)
    return { key, name, meaning, schema, example }
  })
}

function schemaNames(name: string): string[] {
  return [`${name}Event`, `${name}Data`, `Publish${name}`]
}

/** Returns the schemas of what endpoints receive: one per event key, and `ReceivedEvent` for all of them. */
export function receivedSchemas(events: readonly NamedEvent[], { lift }: Components): Record<string, object> {
  const { required } = EnvelopeSchema
  const envelope = lift({ properties: ENVELOPE_FIELDS })['properties'] as object
  const schemas = events.map(({ key, name, meaning, schema }) => [
    [
      `${name}Event`,
      {
        type: 'object',
        title: `${name}Event`,
        description: meaning,
        properties: {
          event: { type: 'string', const: key },
          data: referenceTo(dataName(name, schema)),
          ...envelope,
        },
        required,
      },
    ],
    ...(schema === null ? [] : [[dataName(name, schema), embed(schema, dataName(name, schema))]]),
  ])
  return {
    ...(Object.fromEntries(schemas.flat()) as Record<string, object>),
    [ANY_DATA]: {
      type: 'object',
      title: ANY_DATA,
      additionalProperties: true,
      description: 'The catalogue gives no schema for the payload of this event key',
    },
    ReceivedEvent: {
      title: 'ReceivedEvent',
      description: 'The body of a delivery; `event` is the discriminator',
      oneOf: events.map(({ name }) => referenceTo(`${name}Event`)),
      discriminator: {
        propertyName: 'event',
        mapping: Object.fromEntries(events.map(({ key, name }) => [key, referenceTo(`${name}Event`).$ref])),
      },
    },
  }
}

/** Returns the name of the schema of a payload. */
export function dataName(name: string, schema: object | null): string {
  return schema === null ? ANY_DATA : `${name}Data`
}

/** Returns the schema of a payload as a component: its references count from there, and more fields may come. */
function embed(schema: object, name: string): JsonSchema {
  return { ...adapted(schema as JsonSchema), title: name }

  function adapted(given: JsonSchema): JsonSchema {
    // Inside the document it has no address and no dialect of its own.
    const copy = { ...mapSubschemas(given, adapted), $id: undefined, $schema: undefined }
    const { $ref } = copy as JsonSchema
    const isOpen = given['type'] === 'object' && !('additionalProperties' in given)
    return {
      ...copy,
      ...(typeof $ref === 'string' && $ref.startsWith('#')
        ? { $ref: `${referenceTo(name).$ref}${$ref.slice(1)}` }
        : {}),
      ...(isOpen && !isObject(given['patternProperties']) ? { additionalProperties: true } : {}),
    }
  }
}

/** An envelope of the event, as an example. */
export function envelopeExample({ key, example }: Pick<EventKeyEntry, 'key' | 'example'>): object {
  const traceId = EnvelopeSchema.properties.traceId
  const [trace] = (traceId as { examples?: string[] }).examples ?? []
  return { event: key, data: example, timestamp: 1_777_885_331_000, traceId: trace, triggeredBy: null }
}

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
  Confirmed: {
    description:
      'Any status from 200 to 299, within 15 seconds unless the operator sets another limit: the delivery is completed',
  },
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
