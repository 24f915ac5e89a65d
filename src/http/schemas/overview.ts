import { Type } from 'typebox'
import { FAILURE_TEXTS } from '../../domain/attempt-outcome.ts'
import { WEBHOOK_STATUSES } from '../../domain/webhook-status.ts'
import { EXAMPLE_IDS, id, timestamp, orNull } from './common.ts'
import { FAILURE_CODE, LatestAttemptSchema, STOPPED, WAITING_FIRST_ATTEMPTS } from './delivery.ts'
import { WebhookSchema } from './webhook.ts'

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
      description: 'There may be more failed attempts: the latest 1,000 are counted',
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

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** The times that activity is shown for, each in buckets of one length. */
export const ACTIVITY_RANGES = {
  '1h': { buckets: 12, bucketMs: 5 * MINUTE_MS },
  '24h': { buckets: 24, bucketMs: HOUR_MS },
  '7d': { buckets: 28, bucketMs: 6 * HOUR_MS },
} as const

export type ActivityRange = keyof typeof ACTIVITY_RANGES

export const LatestAttemptSummarySchema = Type.Omit(LatestAttemptSchema, ['payload'], {
  title: 'LatestAttemptSummary',
})

const OpenIncidentSchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.incident),
    openedAt: timestamp('2026-05-04T09:02:12.512Z'),
    exhaustedAt: orNull(timestamp('2026-05-05T18:09:00.000Z'), { examples: [null] }),
  },
  { title: 'OpenIncident' },
)

const RecentAttemptsSchema = Type.Object(
  {
    attempts: Type.Integer({ examples: [200] }),
    succeeded: Type.Integer({ description: 'Of these, confirmed by the endpoint', examples: [194] }),
    p95DurationMs: orNull(Type.Integer({ examples: [410] }), {
      description: '95 of 100 took so long at most; null without attempts',
    }),
  },
  {
    title: 'RecentAttempts',
    description: 'The latest 200 attempts of the last 24 hours; test events do not count',
  },
)

export const WebhookOverviewSchema = Type.Object(
  {
    ...WebhookSchema.properties,
    name: Type.String({
      description:
        'What mails and Temporal call it: host, shortened path, and the end of its id where something was left out',
      examples: ['hooks.example.com/posthorn'],
    }),
    status: Type.Enum([...WEBHOOK_STATUSES], {
      title: 'WebhookStatus',
      description:
        '`failing`: an incident is open. `degraded`: an incident is open, but the latest attempt succeeded, or at least one in ten attempts of the last hour since it opened; or no incident is open and the latest attempt failed. `disabled` and `unattempted`: without an open incident',
      examples: ['degraded'],
    }),
    recent: RecentAttemptsSchema,
    ...WAITING_FIRST_ATTEMPTS,
    waitingForRetry: Type.Integer({ examples: [1] }),
    permanentlyFailed: Type.Integer(),
    stopped: Type.Integer({ description: STOPPED }),
    latestAttempt: orNull(LatestAttemptSummarySchema),
    openIncident: orNull(OpenIncidentSchema),
  },
  { title: 'WebhookOverview' },
)

export const OverviewListSchema = Type.Object(
  { data: Type.Array(WebhookOverviewSchema, { description: 'One row per webhook, oldest webhook first' }) },
  { title: 'WebhookOverviewList' },
)

const RANGES = Object.keys(ACTIVITY_RANGES) as ActivityRange[]

/** Query of activity. */
export const ActivityQuerySchema = Type.Object(
  {
    range: Type.Enum(RANGES, {
      default: '24h',
      description: '`1h` in buckets of 5 minutes, `24h` of an hour, `7d` of 6 hours',
    }),
  },
  { additionalProperties: false },
)

const ActivityBucketSchema = Type.Object(
  {
    startedAt: timestamp('2026-05-04T09:00:00.000Z'),
    succeeded: Type.Integer({
      description: 'Attempts that began in it and were confirmed',
      examples: [120],
    }),
    failed: Type.Integer({ description: 'Attempts that began in it and failed', examples: [3] }),
  },
  { title: 'ActivityBucket' },
)

const FirstAttemptLatencySchema = Type.Object(
  {
    count: Type.Integer({ description: 'First attempts that the figures are taken from', examples: [123] }),
    p50Ms: orNull(Type.Integer({ description: 'Half of them took so long at most', examples: [64] })),
    p99Ms: orNull(Type.Integer({ description: '99 of 100 took so long at most', examples: [410] })),
  },
  {
    title: 'FirstAttemptLatency',
    description:
      'From the acceptance of an event to the end of its first attempt, within the range: the latest 2,000 of each outcome',
  },
)

const BUCKETS = {
  bucketMs: Type.Integer({ description: 'Length of a bucket in ms', examples: [3_600_000] }),
  buckets: Type.Array(ActivityBucketSchema, {
    description: 'Whole buckets in UTC, oldest first; the last one is under way',
  }),
  isCapped: Type.Boolean({
    description:
      'There may be more attempts: the latest 20,000 of each outcome are counted, and of more than ten webhooks the latest 200,000 in equal shares',
    examples: [false],
  }),
}

export const WebhookActivitySchema = Type.Object(
  { webhookId: id(EXAMPLE_IDS.webhook), ...BUCKETS },
  { title: 'WebhookActivity' },
)

export const ActivityListSchema = Type.Object(
  { data: Type.Array(WebhookActivitySchema, { description: 'One row per webhook, oldest webhook first' }) },
  { title: 'ActivityList' },
)

export const ActivitySchema = Type.Object(
  {
    ...BUCKETS,
    p95DurationMs: orNull(Type.Integer({ examples: [410] }), {
      description: '95 of 100 of the latest 2,000 attempts took so long at most; null without attempts',
    }),
    firstAttempt: FirstAttemptLatencySchema,
    failures: FailuresSchema,
  },
  { title: 'Activity' },
)
