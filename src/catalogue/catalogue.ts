import type { FieldError } from '../errors.ts'
import {
  defaultPermissionFor,
  FULL_ACCESS,
  TEST_EVENT_KEY,
  WEBHOOK_READ,
  type PermissionFor,
} from '../domain/permissions.ts'
import type { CatalogueDocument, EventKeyDefinition } from './document.ts'
import { createSchemaCompiler, type CheckPayload } from './schema-compiler.ts'

/** One event key as the API shows it. `schema` is null where no payload is described: any JSON object will do. */
export type EventKeyEntry = Readonly<Required<EventKeyDefinition>>

/** Says what is wrong with an event's `data`; empty when it fits. Pointers start at the envelope: `/data/…`. */
type PayloadValidator = (eventKey: string, data: unknown) => FieldError[]

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
  readonly validatePayload: PayloadValidator
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
export const UNSHAPED_EXAMPLE = { id: '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c' }

/** Compiles every schema, once. Throws CatalogueError naming every problem. */
export function createCatalogue({ eventKeys: definitions }: CatalogueDocument): Catalogue {
  const compile = createSchemaCompiler()
  const problems: string[] = []
  const entries = new Map<string, EventKeyEntry>()
  const checks = new Map<string, CheckPayload>()
  for (const [index, definition] of definitions.entries()) {
    const pointer = `/eventKeys/${index}`
    const entry = toEntry(definition)
    const { key, schema, example } = entry
    if (key === TEST_EVENT_KEY) problems.push(`${pointer}/key "${key}" is the key of test events`)
    if (entries.has(key)) problems.push(`${pointer}/key "${key}" is in the list already`)
    if (schema !== null && definition.example === undefined)
      problems.push(`${pointer}/example is required beside a schema`)
    entries.set(key, entry)
    const compiled = compile(schema ?? ANY_OBJECT)
    problems.push(...compiled.problems.map((problem) => `${pointer}/schema${problem}`))
    if (compiled.problems.length > 0) continue
    checks.set(key, compiled.check)
    if (definition.example === undefined) continue
    problems.push(
      ...compiled
        .check(example)
        .map((error) => `${pointer}/example${error.pointer} ${error.detail}, by its schema`),
    )
  }
  if (problems.length > 0) throw new CatalogueError(problems)

  return {
    eventKeys: [...entries.values()],
    find: (key) => entries.get(key),
    isSubscribable: (key) => entries.get(key)?.subscribable ?? false,
    permissionFor: (key) =>
      entries.get(key)?.permission ?? (key === TEST_EVENT_KEY ? WEBHOOK_READ : FULL_ACCESS),
    validatePayload(eventKey, data) {
      const check = checks.get(eventKey)
      if (check === undefined) throw new Error('the event key is not in the catalogue')
      return check(data).map((error) => ({ ...error, pointer: `/data${error.pointer}` }))
    },
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
