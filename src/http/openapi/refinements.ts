import type { EventKeyEntry } from '../../catalogue/catalogue.ts'
import { FAILURE_TEXTS } from '../../domain/failure-texts.ts'
import { FIELD_PROBLEMS } from '../../domain/field-problems.ts'
import { WILDCARD } from '../../domain/permissions.ts'
import { UUID_PATTERN } from '../../ids.ts'
import { EnvelopeSchema } from '../schemas/common.ts'
import { PublishEventSchema } from '../schemas/event.ts'
import { CreateWebhookSchema } from '../schemas/webhook.ts'
import {
  auditCursor,
  deliveryCursor,
  eventCursor,
  incidentCursor,
  memberCursor,
  organisationCursor,
  retryJobCursor,
} from '../validation/cursor.ts'
import { referenceTo, replaced, type Refinements } from './components.ts'
import { dataName, type NamedEvent } from './event-schemas.ts'
import { RETRY_MODES } from '../../domain/retry-mode.ts'
import { DiscardDeliveriesSchema, RetryDeliveriesSchema } from '../schemas/retry.ts'

/** A host name with a dot, a port that webhooks may have, and a path and query of characters that stay as they are. */
const URL_PATTERN =
  '^https://([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z]{2,63}' +
  '(:(443|102[4-9]|10[3-9]\\d|1[1-9]\\d\\d|[2-9]\\d{3}|[1-5]\\d{4}|6[0-4]\\d{3}))?' +
  '([/?][!$%&()*+,./0-9:;=?@A-Z\\[\\]_a-z~-]*)?$'

/** The canonical form of a URL without a path has a slash more. */
const URL_FORM = { pattern: URL_PATTERN, maxLength: 2047 }

/** Plain addresses, which every mail server takes. */
const MAIL_ADDRESS_PATTERN = '^[a-z0-9]+([.+_-][a-z0-9]+)*@([a-z0-9]+\\.)+[a-z]{2,24}$'

const FAILURES_IN_WORDS = Object.fromEntries(
  Object.entries(FAILURE_TEXTS).map(([code, { cause, cure }]) => [code, `${cause} ${cure}`]),
)

const UUID = UUID_PATTERN.slice(1, -1)

/** The event of examples, where the catalogue has it. */
const SHOWN_KEY = 'invoice:paid'

/**
 * Returns what the document says of named schemas beyond what requests are checked by: the keys of the catalogue, and
 * forms that are refused with a code of their own. Whatever they allow is not refused for its form.
 */
export function refinementsOf(
  catalogue: readonly EventKeyEntry[],
  events: readonly NamedEvent[],
): Refinements {
  return {
    WebhookUrl: URL_FORM,
    PushEndpoint: URL_FORM,
    // What no pattern can say has the name of a format, which tools can be taught.
    PushPublicKey: {
      format: 'p256-public-key',
      pattern: '^B[A-P][A-Za-z0-9_-]{84}[AEIMQUYcgkosw048]=?$',
    },
    PushAuthSecret: { pattern: '^[A-Za-z0-9_-]{21}[AQgw](==)?$' },
    WebhookId: { format: 'uuid', pattern: UUID_PATTERN },
    FieldProblemCode: { 'x-enum-descriptions': FIELD_PROBLEMS },
    FailureCode: { 'x-enum-descriptions': FAILURES_IN_WORDS },
    DeliveryId: { format: 'uuid', pattern: UUID_PATTERN },
    ...SELECTION_REFINEMENTS,
    DeliveryCursor: { pattern: deliveryCursor.pattern },
    EventCursor: { pattern: eventCursor.pattern },
    AuditCursor: { pattern: auditCursor.pattern },
    IncidentCursor: { pattern: incidentCursor.pattern },
    RetryJobCursor: { pattern: retryJobCursor.pattern },
    OrganisationCursor: { pattern: organisationCursor.pattern },
    MemberCursor: { pattern: memberCursor.pattern },
    MailAddress: { pattern: MAIL_ADDRESS_PATTERN },
    MailAddressOrNull: { pattern: MAIL_ADDRESS_PATTERN },
    PortalPath: { pattern: `^/(webhooks(/${UUID}(/deliveries/${UUID})?)?)?$` },
    ...(catalogue.length === 0 ? {} : refinementsOfKeys(catalogue, events)),
  }
}

/** What names the keys of the catalogue; without keys the plain schemas stand. */
function refinementsOfKeys(catalogue: readonly EventKeyEntry[], events: readonly NamedEvent[]): Refinements {
  const shown = catalogue.find(({ key }) => key === SHOWN_KEY) ?? catalogue[0]
  const subscribable = catalogue.filter((entry) => entry.subscribable).map(({ key }) => key)
  const keys = catalogue.map(({ key }) => key).filter((key) => /^[\w:-]+$/.test(key))
  const { maxItems, description } = CreateWebhookSchema.properties.subscribedEventKeys as {
    maxItems?: number
    description?: string
  }
  const wildcard = { type: 'array', items: { type: 'string', const: WILDCARD }, minItems: 1, maxItems: 1 }
  const named = { type: 'array', items: eventKeyOf(subscribable, 'SubscribableEventKey'), minItems: 1 }
  return {
    EventKeys: { pattern: `^(\\*|(${keys.join('|')})(,(${keys.join('|')}))*)$`, examples: [keys[0]] },
    Subscription: replaced({
      description,
      oneOf: [{ ...named, maxItems, uniqueItems: true }, wildcard],
      examples: [subscribable.includes(SHOWN_KEY) ? [SHOWN_KEY] : subscribable.slice(0, 1)],
    }),
    PublishEvent: publishedEvent(catalogue, events, shown),
    TestEventKey: { enum: catalogue.map(({ key }) => key) },
    Envelope: shown === undefined ? {} : { examples: [envelopeExample(shown)] },
  }
}

/** An envelope of the event, as an example. */
export function envelopeExample({ key, example }: Pick<EventKeyEntry, 'key' | 'example'>): object {
  const traceId = EnvelopeSchema.properties.traceId
  const [trace] = (traceId as { examples?: string[] }).examples ?? []
  return { event: key, data: example, timestamp: 1_777_885_331_000, traceId: trace, triggeredBy: null }
}

/** One schema per key whose payload is checked, and one for all others. */
function publishedEvent(
  catalogue: readonly EventKeyEntry[],
  events: readonly NamedEvent[],
  shown: EventKeyEntry | undefined,
) {
  const { properties, required } = PublishEventSchema
  const body = (title: string, event: object, data: string) => ({
    type: 'object',
    title,
    properties: { ...properties, event, data: referenceTo(data) },
    required,
    additionalProperties: false,
  })
  const published = events.filter(({ key }) => catalogue.some((entry) => entry.key === key))
  const checked = published.filter(({ schema }) => schema !== null)
  const others = published.filter(({ schema }) => schema === null).map(({ key }) => key)
  return replaced({
    description: 'An event: the parts of its envelope that the sender gives',
    oneOf: [
      ...checked.map(({ key, name, schema }) =>
        body(`Publish${name}`, { type: 'string', const: key }, dataName(name, schema)),
      ),
      ...(others.length === 0
        ? []
        : [body('PublishOtherEvent', eventKeyOf(others, 'OtherEventKey'), dataName('', null))]),
    ],
    examples: shown === undefined ? [] : [{ event: shown.key, data: shown.example }],
  })
}

function eventKeyOf(keys: readonly string[], title: string) {
  return { type: 'string', title, enum: keys }
}

const { mode, id, deliveryIds, filter } = RetryDeliveriesSchema.properties

/** Of a whole webhook, or of all: without the mode that takes no less than a selection. */
const wholeMode = { ...mode, enum: RETRY_MODES.filter((name) => name !== 'undelivered') }

/** Bodies that select deliveries: one schema for each set of members that belong together. */
const SELECTION_REFINEMENTS: Refinements = {
  RetryDeliveries: oneOf(
    variant('RetryAllDeliveries', { mode: wholeMode, id }, ['mode']),
    variant('RetryNamedDeliveries', { mode, id, deliveryIds }),
    variant('RetryFilteredDeliveries', { mode, id, filter }),
  ),
  DiscardDeliveries: oneOf(
    variant('DiscardNamedDeliveries', { deliveryIds: DiscardDeliveriesSchema.properties.deliveryIds }),
    variant('DiscardFilteredDeliveries', { filter: DiscardDeliveriesSchema.properties.filter }),
  ),
}

function oneOf(...variants: object[]) {
  return replaced({ oneOf: variants })
}

function variant(title: string, properties: object, required = Object.keys(properties)) {
  return { type: 'object', title, properties, required, additionalProperties: false }
}
