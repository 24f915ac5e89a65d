import { Type } from 'typebox'
import { WEBHOOK_STATUSES } from '../../domain/webhook-status.ts'
import { id, orNull, timestamp } from './common.ts'
import { LatestAttemptSchema, STOPPED, WAITING_FIRST_ATTEMPTS } from './delivery.ts'
import { EXAMPLE_IDS } from './example-ids.ts'
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

const WebhookOverviewSchema = Type.Object(
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

const ActivityHourSchema = Type.Object(
  {
    startedAt: timestamp('2026-05-04T09:00:00.000Z'),
    succeeded: Type.Integer({
      description: 'Attempts of that hour that were confirmed',
      examples: [120],
    }),
    failed: Type.Integer({ description: 'Attempts of that hour that failed', examples: [3] }),
  },
  { title: 'ActivityHour' },
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
      'From the acceptance of an event to the end of its first attempt, within 24 hours: the latest 2,000 of each outcome',
  },
)

const hours = Type.Array(ActivityHourSchema, {
  description: '24 whole hours in UTC, oldest first; the last one is under way',
})

const WebhookActivitySchema = Type.Object(
  { webhookId: id(EXAMPLE_IDS.webhook), hours },
  { title: 'WebhookActivity' },
)

export const ActivityListSchema = Type.Object(
  { data: Type.Array(WebhookActivitySchema, { description: 'One row per webhook, oldest webhook first' }) },
  { title: 'ActivityList' },
)

export const ActivitySchema = Type.Object(
  {
    hours,
    firstAttempt: FirstAttemptLatencySchema,
  },
  { title: 'Activity' },
)
