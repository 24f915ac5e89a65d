import { Type } from 'typebox'
import { accountName, memberFields, organisationFields } from '../../accounts/account-fields.ts'
import { PLATFORM_ID_PATTERN, UUID_PATTERN } from '../../ids.ts'
import { EXAMPLE_IDS, id, timestamp, orNull, openObject } from './common.ts'
import { AUDIT_ACTIONS } from '../../domain/audit-action.ts'

/** An id that the platform gives. */
export const givenId = (example: string) =>
  Type.String({ pattern: PLATFORM_ID_PATTERN, description: 'Given by the platform', examples: [example] })

/** Body of `PUT`: the whole organisation; what is left out gets its default. */
export const PutOrganisationSchema = Type.Object(organisationFields, {
  title: 'PutOrganisation',
  additionalProperties: false,
  examples: [
    {
      name: 'Camping Zon',
      email: 'info@zon.example',
      supportEmail: null,
      timeZone: 'Europe/Brussels',
    },
  ],
})

const count = Type.Integer({ minimum: 0, examples: [1000] })

const ErasureSchema = Type.Object(
  {
    requestedAt: timestamp('2026-05-04T08:00:00.000Z'),
    erased: Type.Object(
      { events: count, deliveries: count, attempts: count, incidents: count, auditEntries: count },
      { title: 'Erased', description: 'How many are gone so far' },
    ),
    retained: Type.Array(Type.String(), {
      description: 'What is kept for legal reasons when it is done: nothing',
      examples: [[]],
    }),
  },
  { title: 'Erasure', description: 'Progress of the erasure' },
)

export const OrganisationSchema = Type.Object(
  {
    id: givenId('org_camping'),
    name: Type.String({ examples: ['Camping Zon'] }),
    email: Type.String({ examples: ['info@zon.example'] }),
    supportEmail: orNull(Type.String({ examples: ['help@zon.example'] }), {
      description: 'Where failure notifications go, when set',
    }),
    timeZone: Type.String({
      description: 'IANA name; of the dates in notifications',
      examples: ['Europe/Brussels'],
    }),
    state: Type.Enum(['active', 'erasing'], {
      title: 'OrganisationState',
      description:
        'While it is `erasing` only operators still see it; then it is gone, and answered with 404',
    }),
    erasure: orNull(ErasureSchema, {
      description: 'Null unless the organisation is being erased',
      examples: [null],
    }),
  },
  { title: 'Organisation' },
)

/** Body of `PUT`: the whole member; what is left out gets its default. */
export const PutMemberSchema = Type.Object(memberFields, {
  title: 'PutMember',
  additionalProperties: false,
  examples: [
    {
      name: 'An',
      email: 'an@zon.example',
      fullAccess: false,
      pushEnabled: true,
      permissions: ['webhook:read', 'webhook:manage', 'invoice:read'],
    },
  ],
})

export const MemberSchema = Type.Object(
  {
    id: givenId('mem_an'),
    name: Type.String({ examples: ['An'] }),
    email: Type.String({ examples: ['an@zon.example'] }),
    fullAccess: Type.Boolean({ examples: [false] }),
    pushEnabled: Type.Boolean({ examples: [true] }),
    permissions: Type.Array(Type.String(), {
      examples: [['webhook:read', 'webhook:manage', 'invoice:read']],
    }),
  },
  { title: 'Member' },
)

/** Body of a new API key. */
export const CreateApiKeySchema = Type.Object(
  {
    name: accountName,
    expiresAt: Type.Optional(
      Type.Unsafe<string | null>({
        title: 'KeyExpiry',
        type: ['string', 'null'],
        format: 'date-time',
        description: 'In the future; a key without it does not expire',
      }),
    ),
  },
  {
    title: 'CreateApiKey',
    additionalProperties: false,
    examples: [{ name: 'ci', expiresAt: '2099-01-01T00:00:00Z' }],
  },
)

export const ApiKeySchema = Type.Object(
  {
    id: id(EXAMPLE_IDS.apiKey),
    prefix: Type.String({
      description: 'The first characters of the key, by which it is recognised',
      examples: ['phk_9f2c'],
    }),
    name: Type.String({ examples: ['ci'] }),
    memberId: givenId('mem_an'),
    createdAt: timestamp('2026-05-04T08:00:00.000Z'),
    lastUsedAt: orNull(timestamp('2026-05-04T09:02:00.000Z'), { description: 'To the minute' }),
    expiresAt: orNull(timestamp('2099-01-01T00:00:00.000Z')),
    revokedAt: orNull(timestamp('2026-05-05T08:00:00.000Z'), { examples: [null] }),
  },
  { title: 'ApiKey' },
)

/** A new key with its value. */
export const CreatedApiKeySchema = Type.Object(
  {
    ...ApiKeySchema.properties,
    key: Type.String({
      description: 'The key itself, in this answer only',
      examples: ['phk_9f2cV7mQ3xKd8TzR1bLw6YhN4sGe0Uj'],
    }),
  },
  { title: 'CreatedApiKey' },
)

/** The calling member's own keys. */
export const OwnApiKeyListSchema = Type.Object(
  {
    data: Type.Array(ApiKeySchema),
    isCreationEnabled: Type.Boolean({
      description: 'False where the operator creates all keys (`MEMBER_API_KEYS`)',
      examples: [true],
    }),
  },
  { title: 'OwnApiKeyList' },
)

export const ApiKeyListSchema = Type.Object({ data: Type.Array(ApiKeySchema) }, { title: 'ApiKeyList' })

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
