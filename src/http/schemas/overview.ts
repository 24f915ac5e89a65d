import { Type } from 'typebox'
import { ACTIVITY_RANGES, type ActivityRange } from '../../domain/activity-range.ts'
import { WEBHOOK_STATUSES } from '../../domain/webhook-status.ts'
import { EXAMPLE_IDS, id, timestamp, orNull } from './common.ts'
import { LatestAttemptSchema, STOPPED, WAITING_FIRST_ATTEMPTS } from './delivery.ts'
import { FailuresSchema } from './incident.ts'
import { WebhookSchema } from './webhook.ts'

const LatestAttemptSummarySchema = Type.Omit(LatestAttemptSchema, ['payload'], {
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
    description: 'There were more attempts: the latest 20,000 of each outcome are counted',
    examples: [false],
  }),
}

const WebhookActivitySchema = Type.Object(
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
