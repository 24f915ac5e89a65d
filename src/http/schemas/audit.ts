import { Type } from 'typebox'
import { AUDIT_ACTIONS } from '../../domain/audit-action.ts'
import { IdSchema, orNull, TimestampSchema } from './common.ts'

const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'

/** Query of the audit trail. */
export const AuditQuerySchema = Type.Object(
  {
    webhookId: Type.Optional(
      Type.String({ pattern: UUID, description: 'What was done to this webhook only' }),
    ),
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Entries per page' }),
    cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before' })),
  },
  { additionalProperties: false },
)

const AuditEntrySchema = Type.Object({
  id: IdSchema,
  at: TimestampSchema,
  memberId: orNull(Type.String({ description: 'Who did it; null for an operator at the command line' })),
  apiKeyId: orNull(IdSchema),
  action: Type.Enum([...AUDIT_ACTIONS]),
  webhookId: orNull(IdSchema),
  deliveryId: orNull(IdSchema),
  details: Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        'By action; never a secret. Of a change by `posthorn seed`: `actor` is `seed`, `before` is null for what is new, `after`',
    },
  ),
  address: orNull(Type.String({ description: 'IP address of the sender of the request' })),
  requestId: orNull(Type.String({ description: 'The `x-request-id` of the request' })),
})

export const AuditListSchema = Type.Object({
  data: Type.Array(AuditEntrySchema),
  nextCursor: orNull(Type.String({ description: 'For the next page; null on the last' })),
})
