import { Type } from 'typebox'
import { IdSchema, orNull, TimestampSchema } from './common.ts'

const NotificationSchema = Type.Object({
  kind: Type.Enum([1, 2], {
    description: '1: failing for five minutes · 2: first delivery permanently failed',
  }),
  channel: Type.Enum(['email', 'push']),
  recipient: orNull(Type.String(), {
    description:
      'E-mail address, or id of a push subscription; null for a member without `organizationSettings:update`',
  }),
  state: Type.Enum(['pending', 'sending', 'sent', 'failed', 'unknown'], {
    description: '`unknown`: handed over without an answer; never sent again',
  }),
  sentAt: orNull(TimestampSchema),
})

export const IncidentSchema = Type.Object({
  id: IdSchema,
  openedAt: TimestampSchema,
  closedAt: orNull(TimestampSchema),
  exhaustedAt: orNull(TimestampSchema, {
    description: 'When its first delivery was marked permanently failed',
  }),
  notifications: Type.Array(NotificationSchema, {
    description: 'In the order of kind, channel and recipient',
  }),
})

export const IncidentListSchema = Type.Object({ data: Type.Array(IncidentSchema) })
