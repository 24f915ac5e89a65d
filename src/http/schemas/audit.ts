import { Type } from 'typebox'
import { AUDIT_ACTIONS } from '../../domain/audit-action.ts'
import { PLATFORM_ID_PATTERN, UUID_PATTERN } from '../../ids.ts'
import { EXAMPLE_IDS, id, timestamp, orNull, openObject } from './common.ts'

/** What the audit trail is filtered by. */
export const AuditFilterSchema = Type.Object({
  webhookId: Type.Optional(
    Type.String({ pattern: UUID_PATTERN, description: 'What was done to this webhook only' }),
  ),
  memberId: Type.Optional(
    Type.String({
      pattern: PLATFORM_ID_PATTERN,
      description: 'What this member did only',
      examples: ['mem_an'],
    }),
  ),
  action: Type.Optional(Type.Enum([...AUDIT_ACTIONS], { description: 'Entries of this action only' })),
})

export const AuditEntrySchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.auditEntry),
    at: timestamp('2026-05-04T08:00:00.000Z'),
    memberId: orNull(Type.String({ examples: ['mem_an'] }), {
      description: 'Who did it; null over the operator API and at the command line',
    }),
    apiKeyId: orNull(id(EXAMPLE_IDS.apiKey)),
    action: Type.Enum([...AUDIT_ACTIONS]),
    webhookId: orNull(id(EXAMPLE_IDS.webhook)),
    deliveryId: orNull(id(EXAMPLE_IDS.delivery), { examples: [null] }),
    details: openObject({
      description:
        'By action; never a secret. `actor`: `operator:` and the name of an operator key, or `seed` for `posthorn seed`; of what these change, `before` (null for what is new) and `after`',
    }),
    address: orNull(Type.String({ examples: ['203.0.113.24'] }), {
      description: 'IP address of the sender of the request',
    }),
    requestId: orNull(Type.String({ examples: ['f0a1c2d3e4'] }), {
      description: 'The `x-request-id` of the request',
    }),
  },
  { title: 'AuditEntry' },
)
