import type { FieldError } from '../problem-error.ts'
import {
  defaultPermissionFor,
  FULL_ACCESS,
  TEST_EVENT_KEY,
  WEBHOOK_READ,
  type PermissionFor,
  EVENT_KEY_PATTERN,
  MAX_EVENT_KEY_LENGTH,
  PERMISSION_PATTERN,
} from '../domain/permissions.ts'
import { isObject } from '../json-schema/count-checks.ts'
import { createSchemaCompiler, type CompiledSchema } from './schema-compiler.ts'
import { Type, type Static } from 'typebox'
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

/** One event key of a document; what is left out has its default. */
export type EventKeyDefinition = Static<typeof DefinitionSchema>

/** One event key as the API shows it. `schema` is null where no payload is described: any JSON object will do. */
export type EventKeyEntry = Readonly<Required<EventKeyDefinition>>

/** The event keys of a process, read once at its start. */
export type Catalogue = {
  /** Every event key that can be published, in the document's order. */
  readonly eventKeys: readonly EventKeyEntry[]
  /** Returns the entry of `key`, spelled exactly, or undefined where there is no such key. */
  readonly find: (key: string) => EventKeyEntry | undefined
  /** Returns whether a webhook may name this key among its subscriptions; the wildcard is no key and answers false. */
  readonly isSubscribable: (key: string) => boolean
  /**
   * Returns the permission to subscribe to `key` and to read its events. A key that is not in the catalogue requires
   * full access: which permission it had is not known any more.
   */
  readonly permissionFor: PermissionFor
  /** Whether checking `data` may take long: it is checked in a thread (createPayloadThreads), not here. */
  readonly isCostly: (eventKey: string, data: unknown) => boolean
  /** Says what is wrong with an event's `data`; empty when it fits. Pointers start at the envelope: `/data/…`. */
  readonly validatePayload: (eventKey: string, data: unknown) => FieldError[]
}

/** A catalogue document that cannot be used; every problem at once. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** The schema and the example of a key whose payload is not described. */
const ANY_OBJECT = { type: 'object' }
const UNSHAPED_EXAMPLE = { id: '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c' }

/** An entry whose example is checked in a thread. */
export type CostlyExample = { readonly pointer: string; readonly schema: object; readonly example: object }

/** What a list of event keys comes to; `catalogue` is null where there are problems. */
type Compilation = {
  catalogue: Catalogue | null
  problems: readonly string[]
  /** Whose problems are still to be found. */
  costlyExamples: readonly CostlyExample[]
}

/**
 * Compiles every schema, once. Fields that are malformed, which CatalogueDocumentSchema names, are passed over, so that
 * the problems of all others are found beside them.
 */
export function compileCatalogue(definitions: readonly unknown[]): Compilation {
  const compile = createSchemaCompiler()
  const problems: string[] = []
  const costlyExamples: CostlyExample[] = []
  const entries = new Map<string, EventKeyEntry>()
  const compiledSchemas = new Map<string, CompiledSchema>()
  for (const [index, definition] of definitions.entries()) {
    const pointer = `/eventKeys/${index}`
    const { key, schema, example } = wellFormed(definition)
    if (key === TEST_EVENT_KEY) problems.push(`${pointer}/key "${key}" is the key of test events`)
    if (key !== null && entries.has(key)) problems.push(`${pointer}/key "${key}" is in the list already`)
    if (schema !== null && example === undefined)
      problems.push(`${pointer}/example is required beside a schema`)
    const compiled = compile(schema ?? ANY_OBJECT)
    problems.push(...compiled.problems.map((problem) => `${pointer}/schema${problem}`))
    if (key !== null) {
      entries.set(key, toEntry(definition as EventKeyDefinition))
      compiledSchemas.set(key, compiled)
    }
    if (compiled.problems.length > 0 || !isObject(example)) continue
    if (schema !== null && compiled.isCostly(example)) costlyExamples.push({ pointer, schema, example })
    else problems.push(...exampleProblems(pointer, compiled.check(example)))
  }
  const catalogue = problems.length === 0 ? toCatalogue(entries, compiledSchemas) : null
  return { catalogue, problems, costlyExamples }
}

/** Returns the problems of an example as those of the document. */
export function exampleProblems(pointer: string, errors: readonly FieldError[]): string[] {
  return errors.map((error) => `${pointer}/example${error.pointer} ${error.detail}, by its schema`)
}

function toCatalogue(
  entries: ReadonlyMap<string, EventKeyEntry>,
  compiledSchemas: ReadonlyMap<string, CompiledSchema>,
): Catalogue {
  const compiledSchema = (eventKey: string): CompiledSchema => {
    const compiled = compiledSchemas.get(eventKey)
    if (compiled === undefined) throw new Error('the event key is not in the catalogue')
    return compiled
  }
  return {
    eventKeys: [...entries.values()],
    find: (key) => entries.get(key),
    isSubscribable: (key) => entries.get(key)?.subscribable ?? false,
    permissionFor: (key) =>
      entries.get(key)?.permission ?? (key === TEST_EVENT_KEY ? WEBHOOK_READ : FULL_ACCESS),
    isCostly: (eventKey, data) => compiledSchema(eventKey).isCostly(data),
    validatePayload: (eventKey, data) => belowData(compiledSchema(eventKey).check(data)),
  }
}

/** Returns the error of a field that names an event key which the catalogue lacks; a schema refuses other types itself. */
export function eventKeyErrors(
  { find }: Pick<Catalogue, 'find'>,
  key: unknown,
  pointer: string,
): FieldError[] {
  if (typeof key !== 'string' || find(key) !== undefined) return []
  return [{ pointer, code: 'unknown_event_key', detail: 'There is no such event key.' }]
}

/** Returns errors of a payload with pointers that start at the envelope. */
export function belowData(errors: readonly FieldError[]): FieldError[] {
  return errors.map((error) => ({ ...error, pointer: `/data${error.pointer}` }))
}

/** The fields of a definition that have the type they must have. */
function wellFormed(definition: unknown): {
  key: string | null
  schema: object | null
  example: object | null | undefined
} {
  if (!isObject(definition)) return { key: null, schema: null, example: undefined }
  const { key, schema, example } = definition
  return {
    key: typeof key === 'string' ? key : null,
    schema: isObject(schema) ? schema : null,
    example: example === undefined || isObject(example) ? example : null,
  }
}

function toEntry(definition: EventKeyDefinition): EventKeyEntry {
  const { key, meaning, permission, subscribable = true, schema = null, example } = definition
  return {
    key,
    meaning,
    permission: permission ?? defaultPermissionFor(key),
    subscribable,
    schema,
    example: example ?? UNSHAPED_EXAMPLE,
  }
}
