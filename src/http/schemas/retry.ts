import { Type } from 'typebox'
import { IdSchema, orNull } from './common.ts'

/** Body of retry-deliveries (spec 4.2). */
export const RetryDeliveriesSchema = Type.Object(
  {
    mode: Type.Enum(['failed', 'force'], {
      description:
        '`failed`: permanently failed deliveries only; `force`: waiting ones too, ignoring their waits',
    }),
    id: Type.Optional(
      Type.String({ description: 'Limits the job to one webhook; without it: all enabled webhooks' }),
    ),
  },
  { additionalProperties: false },
)

export const RetryJobSchema = Type.Object({
  id: IdSchema,
  mode: Type.Enum(['failed', 'force']),
  webhookId: orNull(IdSchema),
  state: Type.Enum(['running', 'done']),
  total: Type.Integer({ description: 'Deliveries it covered when it was made' }),
  done: Type.Integer({ description: 'Of these, attempted or no longer in need of it' }),
})

export const RetryAcceptedSchema = Type.Object({ deliveryId: IdSchema })

export const DiscardedSchema = Type.Object({ discarded: Type.Integer() })
