import { Type, type TSchema, type TSchemaOptions } from 'typebox'
import { PROBLEMS } from '../../domain/problems.ts'
import { FIELD_PROBLEMS } from '../../json-schema/field-errors.ts'

/** Ids in the examples of the OpenAPI document: the same thing has the same id wherever it is shown. */
export const EXAMPLE_IDS = {
  webhook: '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c',
  event: '01977012-4f0a-7c31-8e25-90ab5c6d7e8f',
  delivery: '01977012-4f0b-7d02-a1b3-c4d5e6f70819',
  retryJob: '01977a40-0b6c-7f11-b2c3-d4e5f6a7b8c9',
  incident: '01977012-6a2d-7e44-9c0d-1e2f3a4b5c6d',
  pushSubscription: '01976f40-11aa-7b0c-8d1e-2f3a4b5c6d7e',
  auditEntry: '01976f3e-8c20-7a01-b234-56789abcdef0',
  apiKey: '01976e00-0a1b-7c2d-9e3f-405162738495',
} as const

/** `example`: one of `EXAMPLE_IDS`. */
export const id = (example: string) =>
  Type.String({ format: 'uuid', description: 'UUID version 7', examples: [example] })

export const timestamp = (example: string, description = 'ISO 8601, UTC, with milliseconds') =>
  Type.String({ format: 'date-time', description, examples: [example] })

/** `options` describe the union. */
export const orNull = <Schema extends TSchema>(schema: Schema, options: TSchemaOptions = {}) =>
  Type.Union([schema, Type.Null()], options)

/** An object whose fields are not listed. */
export const openObject = (options: TSchemaOptions = {}) =>
  Type.Unsafe<Record<string, unknown>>(Type.Object({}, { additionalProperties: true, ...options }))

/** Texts by name. */
export const textMap = (options: TSchemaOptions = {}) =>
  Type.Unsafe<Record<string, string>>(Type.Object({}, { additionalProperties: Type.String(), ...options }))

/** A host name with a dot, a port that webhooks may have, and a path and query of characters that stay as they are. */
const URL_PATTERN =
  '^https://([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\\.)+[A-Za-z]{2,63}' +
  '(:(443|102[4-9]|10[3-9]\\d|1[1-9]\\d\\d|[2-9]\\d{3}|[1-5]\\d{4}|6[0-4]\\d{3}))?' +
  '([/?][!$%&()*+,./0-9:;=?@A-Z\\[\\]_a-z~-]*)?$'

/** What is documented of the URLs that events and push messages go to. A canonical one without a path has a slash more. */
export const URL_FORM = { pattern: URL_PATTERN, maxLength: 2047 }

const TriggeredBySchema = Type.Object(
  {
    id: Type.String({ examples: ['usr_7'] }),
    name: Type.String({ examples: ['An Peeters'] }),
  },
  { title: 'TriggeredBy', description: 'The user who performed the action' },
)

/** Each field is described once, for the envelope and for the received event of each key. */
export const ENVELOPE_FIELDS = {
  timestamp: Type.Integer({ description: 'Unix ms of emission', examples: [1_777_885_331_000] }),
  traceId: Type.String({
    description: 'Trace of the originating action; several events of one action share it',
    examples: ['6c42567ab0f8157384bcb87bd270b3cb'],
  }),
  spanId: Type.Optional(
    Type.String({
      description: 'Span inside that trace, where one was given',
      examples: ['00f067aa0ba902b7'],
    }),
  ),
  triggeredBy: orNull(TriggeredBySchema, { description: 'null for what a system did', examples: [null] }),
}

export const EnvelopeSchema = Type.Object(
  {
    event: Type.String({ description: 'Event key', examples: ['invoice:paid'] }),
    data: openObject({
      description: 'The payload, token by token as it was published',
      examples: [{ invoice: { id: 'inv_5d7710' }, payment: { id: 'pay_93b0aa' } }],
    }),
    ...ENVELOPE_FIELDS,
  },
  { title: 'Envelope', description: 'The envelope as it is delivered' },
)

export const PayloadErasedSchema = orNull(
  Type.Object(
    {
      at: timestamp('2026-05-05T08:30:00.000Z'),
      by: Type.String({
        description: 'Id of the member, or `operator:` and the name of the operator key',
        examples: ['mem_an'],
      }),
    },
    { title: 'PayloadErased' },
  ),
  { description: 'When the payload was erased, and by whom; null where it was not', examples: [null] },
)

/** A member as the user of a browser knows it. */
const NamedMemberSchema = Type.Object(
  {
    organisation: Type.Object(
      { id: Type.String({ examples: ['org_camping'] }), name: Type.String({ examples: ['Camping Zon'] }) },
      { title: 'NamedOrganisation' },
    ),
    member: Type.Object(
      { id: Type.String({ examples: ['mem_an'] }), name: Type.String({ examples: ['An'] }) },
      { title: 'NameOfMember' },
    ),
  },
  { title: 'NamedMember' },
)

const names = <Name extends string>(table: Readonly<Record<Name, unknown>>): Name[] =>
  Object.keys(table) as Name[]

const FieldProblemSchema = Type.Object(
  {
    pointer: Type.String({
      description: 'JSON pointer into the body, or `/` and the name of a query parameter',
      examples: ['/url'],
    }),
    // Typed as text: a caller has to expect codes that are newer than its client.
    code: Type.Unsafe<string>(
      Type.Enum(names(FIELD_PROBLEMS), {
        title: 'FieldProblemCode',
        documented: { 'x-enum-descriptions': FIELD_PROBLEMS },
      }),
    ),
    detail: Type.String({ examples: ['is required'] }),
  },
  { title: 'FieldProblem', description: 'What is wrong with one field' },
)

export const ProblemSchema = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.Unsafe<string>(Type.Enum(names(PROBLEMS), { description: 'Stable; for programs' })),
    detail: Type.Optional(Type.String()),
    errors: Type.Optional(Type.Array(FieldProblemSchema)),
    missingPermissions: Type.Optional(Type.Array(Type.String())),
    signedIn: Type.Optional(NamedMemberSchema),
    requested: Type.Optional(NamedMemberSchema),
  },
  { title: 'Problem', description: 'RFC 9457 problem' },
)
