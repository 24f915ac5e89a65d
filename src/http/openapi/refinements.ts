import type { EventKeyEntry } from '../../catalogue/catalogue.ts'
import { WILDCARD } from '../../domain/permissions.ts'
import { PublishEventSchema } from '../schemas/event.ts'
import { CreateWebhookSchema } from '../schemas/webhook.ts'
import { referenceTo, replaced, type Refinements } from './components.ts'
import { dataName, envelopeExample, type NamedEvent } from './received-events.ts'

/** The event of examples, where the catalogue has it. */
const SHOWN_KEY = 'invoice:paid'

/** Returns what the document says of named schemas by the keys of the catalogue; without keys the plain schemas stand. */
export function refinementsOf(
  catalogue: readonly EventKeyEntry[],
  events: readonly NamedEvent[],
): Refinements {
  if (catalogue.length === 0) return {}
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
    ReplayedEventKey: { enum: catalogue.map(({ key }) => key) },
    Envelope: shown === undefined ? {} : { examples: [envelopeExample(shown)] },
  }
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
