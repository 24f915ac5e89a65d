import { Type } from 'typebox'
import { FAILURE_TEXTS } from '../../domain/attempt-outcome.ts'
import { EXAMPLE_IDS, id, timestamp, orNull } from './common.ts'
import { FAILURE_CODE } from './delivery.ts'

const FailureCauseSchema = Type.Object(
  {
    failureCode: FAILURE_CODE,
    statusCode: orNull(Type.Integer(), { description: 'What the endpoint answered', examples: [503] }),
    error: orNull(Type.String(), {
      description: "What went wrong, in Posthorn's words",
      examples: ['The endpoint answered 503 Service Unavailable.'],
    }),
    cure: Type.String({
      description: 'What to do about it, the same text for each failure code',
      examples: [FAILURE_TEXTS.http_status.cure],
    }),
    failedAttempts: Type.Integer({ examples: [38] }),
    deliveries: Type.Integer({ description: 'Deliveries that these attempts were of', examples: [12] }),
    firstAt: timestamp('2026-05-04T08:02:12.301Z', 'When the first of these attempts began'),
    lastAt: timestamp('2026-05-04T09:02:12.301Z', 'When the last of these attempts began'),
  },
  { title: 'FailureCause', description: 'Attempts that failed in the same way' },
)

export const FailuresSchema = Type.Object(
  {
    failedAttempts: Type.Integer({ description: 'Test events do not count', examples: [38] }),
    deliveries: Type.Integer({ description: 'Deliveries that these attempts were of', examples: [12] }),
    isCapped: Type.Boolean({
      description: 'There were more failed attempts: the latest 1,000 are counted',
      examples: [false],
    }),
    causes: Type.Array(FailureCauseSchema, { description: 'The most frequent first, 20 at most' }),
  },
  { title: 'Failures', description: 'Failed attempts, grouped by their cause' },
)

const NotificationSchema = Type.Object(
  {
    kind: Type.Enum([1, 2], {
      description: '1: failing for five minutes · 2: first delivery permanently failed',
    }),
    channel: Type.Enum(['email', 'push']),
    recipient: orNull(Type.String({ examples: ['info@zon.example'] }), {
      description:
        'E-mail address, or id of a push subscription; null for a member without `organizationSettings:update`',
    }),
    state: Type.Enum(['pending', 'sending', 'sent', 'failed', 'unknown'], {
      description: '`unknown`: handed over without an answer; never sent again',
      examples: ['sent'],
    }),
    sentAt: orNull(timestamp('2026-05-04T09:07:12.900Z')),
  },
  { title: 'Notification' },
)

export const IncidentSchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.incident),
    openedAt: timestamp('2026-05-04T09:02:12.512Z'),
    closedAt: orNull(timestamp('2026-05-04T09:40:00.000Z'), { examples: [null] }),
    exhaustedAt: orNull(timestamp('2026-05-05T18:09:00.000Z'), {
      description: 'When its first delivery was marked permanently failed',
      examples: [null],
    }),
    failures: FailuresSchema,
    notifications: Type.Array(NotificationSchema, {
      description: 'In the order of kind, channel and recipient',
    }),
  },
  { title: 'Incident' },
)
