import { Type } from 'typebox'
import { IdSchema, orNull, TimestampSchema } from './common.ts'
import { LatestAttemptSchema, STOPPED } from './delivery.ts'
import { WebhookSchema } from './webhook.ts'

const OverviewSchema = Type.Object({
  ...WebhookSchema.properties,
  name: Type.String({
    description:
      'What mails and Temporal call it: host, shortened path, and the end of its id where something was left out',
  }),
  waitingForRetry: Type.Integer(),
  permanentlyFailed: Type.Integer(),
  stopped: Type.Integer({ description: STOPPED }),
  latestAttempt: orNull(Type.Omit(LatestAttemptSchema, ['payload'])),
  openIncident: orNull(
    Type.Object({
      id: IdSchema,
      openedAt: TimestampSchema,
      exhaustedAt: orNull(TimestampSchema),
    }),
  ),
})

export const OverviewListSchema = Type.Object({
  data: Type.Array(OverviewSchema, { description: 'One row per webhook, oldest webhook first' }),
})

export const ActivitySchema = Type.Object({
  hours: Type.Array(
    Type.Object({
      startedAt: TimestampSchema,
      succeeded: Type.Integer({ description: 'Attempts of that hour that were confirmed' }),
      failed: Type.Integer({ description: 'Attempts of that hour that failed' }),
    }),
    { description: '24 whole hours in UTC, oldest first; the last one is under way' },
  ),
  firstAttempt: Type.Object(
    {
      count: Type.Integer({ description: 'First attempts that the figures are taken from' }),
      p50Ms: orNull(Type.Integer({ description: 'Half of them took so long at most' })),
      p99Ms: orNull(Type.Integer({ description: '99 of 100 took so long at most' })),
    },
    {
      description:
        'From the acceptance of an event to the end of its first attempt, within 24 hours: the latest 2,000 of each outcome',
    },
  ),
})
