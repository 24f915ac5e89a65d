import { Type, type Static } from 'typebox'
import { eventKeyErrors, type Catalogue } from '../../catalogue/catalogue.ts'
import { REPLAY_INCLUDES, type ReplayRange } from '../../domain/delivery-filter.ts'
import type { FieldError } from '../../problem-error.ts'
import { EXAMPLE_IDS, id, timestamp, orNull } from './common.ts'

const eventKeys = Type.Array(
  Type.String({ title: 'ReplayedEventKey', maxLength: 100, examples: ['invoice:paid'] }),
  {
    title: 'ReplayedEventKeys',
    minItems: 1,
    maxItems: 100,
    uniqueItems: true,
    description: 'Events with these keys only; the webhook has to be subscribed to each',
  },
)

const include = Type.Enum([...REPLAY_INCLUDES], {
  title: 'ReplayInclude',
  description: '`missing`: events of which the webhook has no delivery; `all`: others too, each once more',
  examples: ['missing'],
})

/** Body of a replay. */
export const RequestReplaySchema = Type.Object(
  {
    since: timestamp('2026-05-04T00:00:00.000Z', 'Events published at that time or later; not in the future'),
    until: Type.Optional(
      timestamp('2026-05-05T00:00:00.000Z', 'Events published before that time; default: now'),
    ),
    eventKeys: Type.Optional(eventKeys),
    include: Type.Optional(include),
    dryRun: Type.Optional(Type.Boolean({ description: 'Counts only', examples: [false] })),
  },
  { additionalProperties: false, title: 'RequestReplay' },
)

const COUNT = {
  since: timestamp(
    '2026-05-04T00:00:00.000Z',
    'Later than requested where older events are no longer kept, nor, with `missing`, older completed deliveries',
  ),
  until: timestamp('2026-05-05T00:00:00.000Z', 'Not later than the request'),
  total: Type.Integer({ description: 'Events to send', examples: [12] }),
  isTotalExact: Type.Boolean({
    description:
      'False: there are more than 100,000 events in the range, and `total` counts the first of them only',
    examples: [true],
  }),
}

export const ReplayCountSchema = Type.Object(COUNT, { title: 'ReplayCount' })

export const ReplaySchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.retryJob),
    webhookId: id(EXAMPLE_IDS.webhook),
    state: Type.Enum(['running', 'done', 'cancelled']),
    ...COUNT,
    eventKeys: orNull(eventKeys, { description: 'null: all that the webhook is subscribed to' }),
    include,
    done: Type.Integer({ description: 'Of `total`, attempted, or no longer to be sent', examples: [7] }),
    succeeded: Type.Integer({ description: 'Of `done`, completed by the first attempt', examples: [6] }),
    failed: Type.Integer({
      description: 'Of `done`, not delivered by the first attempt; these are retried on the schedule',
      examples: [1],
    }),
    createdAt: timestamp('2026-05-05T08:00:00.000Z'),
  },
  { title: 'Replay' },
)

export const ReplayListSchema = Type.Object(
  { data: Type.Array(ReplaySchema, { description: 'The newest 100 at most, newest first' }) },
  { title: 'ReplayList' },
)

/** Returns the range that a body asks for. */
export function parseRange(body: Static<typeof RequestReplaySchema>): ReplayRange {
  const { since, until, eventKeys = null, include = 'missing' } = body
  return {
    since: new Date(since),
    until: until === undefined ? null : new Date(until),
    eventKeys,
    include,
  }
}

/** Checks that the range has a past, and that each event key exists. */
export function rangeErrors(
  { since, until, eventKeys }: Readonly<Record<string, unknown>>,
  { catalogue, clock }: { catalogue: Catalogue; clock: { nowMs: () => number } },
): FieldError[] {
  const errors: FieldError[] = []
  const from = typeof since === 'string' ? Date.parse(since) : Number.NaN
  if (from > clock.nowMs())
    errors.push({ pointer: '/since', code: 'invalid', detail: 'must not be in the future' })
  if (typeof until === 'string' && Date.parse(until) <= from)
    errors.push({ pointer: '/until', code: 'invalid', detail: 'must be later than `since`' })
  if (!Array.isArray(eventKeys)) return errors
  const unknown = eventKeys.flatMap((key, index) => eventKeyErrors(catalogue, key, `/eventKeys/${index}`))
  return [...errors, ...unknown]
}
