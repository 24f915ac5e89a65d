import { Type } from 'typebox'
import { RETRY_MODES } from '../../domain/retry-mode.ts'
import { IdSchema, orNull } from './common.ts'

/** Body of retry-deliveries (spec 4.2). */
export const RetryDeliveriesSchema = Type.Object(
  {
    mode: Type.Enum([...RETRY_MODES], {
      description:
        '`failed`: permanently failed deliveries only; `force`: waiting ones too, ignoring their waits; `stopped`: those that were stopped with their webhook or subscription go on with their schedule, discarded ones are left alone',
    }),
    id: Type.Optional(
      Type.String({ description: 'Limits the job to one webhook; without it: all enabled webhooks' }),
    ),
  },
  { additionalProperties: false },
)

export const RetryJobSchema = Type.Object({
  id: IdSchema,
  mode: Type.Enum([...RETRY_MODES]),
  webhookId: orNull(IdSchema),
  state: Type.Enum(['running', 'done']),
  total: Type.Integer({ description: 'Deliveries it covered when it was made' }),
  done: Type.Integer({ description: 'Of these, attempted or no longer in need of it' }),
  succeeded: Type.Integer({ description: 'Of `done`, completed by the attempt of this job' }),
  failed: Type.Integer({ description: 'Of `done`, attempted by this job and not delivered' }),
})

export const RetryAcceptedSchema = Type.Object({ deliveryId: IdSchema })

export const DiscardedSchema = Type.Object({ discarded: Type.Integer() })
