import { Type } from 'typebox'
import { EXAMPLE_IDS, id, timestamp, orNull } from './common.ts'
import { FailuresSchema } from './failures.ts'

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
