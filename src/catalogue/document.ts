import { Type, type Static } from 'typebox'
import { EVENT_KEY_PATTERN, MAX_EVENT_KEY_LENGTH, PERMISSION_PATTERN } from '../domain/event-key.ts'
import { PLAIN_TEXT_PATTERN } from '../domain/text-rules.ts'

const MAX_EVENT_KEYS = 1_000

const DefinitionSchema = Type.Object(
  {
    key: Type.String({ pattern: EVENT_KEY_PATTERN, maxLength: MAX_EVENT_KEY_LENGTH }),
    meaning: Type.String({ minLength: 1, maxLength: 200, pattern: PLAIN_TEXT_PATTERN }),
    permission: Type.Optional(Type.String({ pattern: PERMISSION_PATTERN, maxLength: 100 })),
    subscribable: Type.Optional(Type.Boolean()),
    schema: Type.Optional(Type.Unsafe<object | null>({ type: ['object', 'null'] })),
    example: Type.Optional(Type.Unsafe<object>({ type: 'object' })),
  },
  { additionalProperties: false },
)

/** A catalogue as a JSON document; docs/catalogue.md describes it. */
export const CatalogueDocumentSchema = Type.Object(
  { eventKeys: Type.Array(DefinitionSchema, { minItems: 1, maxItems: MAX_EVENT_KEYS }) },
  { additionalProperties: false },
)

export type CatalogueDocument = Static<typeof CatalogueDocumentSchema>

/** One event key of a document; what is left out has its default. */
export type EventKeyDefinition = CatalogueDocument['eventKeys'][number]
