import { isObject } from '../../json-schema/count-checks.ts'
import { mapSubschemas } from '../../json-schema/slow-keywords.ts'

/** A JSON schema (2020-12) as far as documents are made of it; other keywords pass unchanged. */
export type JsonSchema = {
  readonly [keyword: string]: unknown
  readonly title?: string
  readonly examples?: readonly unknown[]
  readonly documented?: Readonly<Record<string, unknown>>
}

/** What a document adds to named schemas, by their title. */
export type Refinements = Readonly<Record<string, JsonSchema>>

/** The named schemas of a document. */
export type Components = {
  /** Returns the schema, in which references replace every schema that has a title. */
  lift: (schema: object) => JsonSchema
  /** Returns an example that fits the schema: its own, or one made of those of its parts. */
  exampleOf: (schema: object) => unknown
  /** The schemas that were lifted, by title. */
  schemas: () => Record<string, JsonSchema>
}

/**
 * Creates the named schemas of one document. Merged into each are its keyword `documented`, which has what requests are not
 * checked by, and its part of `refinements`. What a form in `documented` allows is not refused for its form.
 */
export function createComponents(refinements: Refinements): Components {
  const lifted = new Map<string, { source: string; schema: JsonSchema }>()

  function lift(given: object): JsonSchema {
    const schema = given as JsonSchema
    const { title } = schema
    const below = mapSubschemas(refined(schema), lift)
    if (title === undefined) return below
    const source = JSON.stringify(schema)
    const known = lifted.get(title)
    if (known !== undefined && known.source !== source) throw new Error(`two schemas are called ${title}`)
    lifted.set(title, { source, schema: below })
    return referenceTo(title)
  }

  function refined(schema: JsonSchema): JsonSchema {
    const { documented = {}, ...checked } = schema
    return { ...checked, ...documented, ...refinements[schema.title ?? ''] }
  }

  function exampleOf(given: object): unknown {
    const schema = refined(given as JsonSchema)
    if (schema.examples !== undefined) return schema.examples[0]
    for (const keyword of ['default', 'const']) if (keyword in schema) return schema[keyword]
    const [choice] = ['enum', 'anyOf', 'oneOf'].map((keyword) => schema[keyword]).filter(Array.isArray)
    if (choice !== undefined) return isObject(choice[0]) ? exampleOf(choice[0]) : choice[0]
    if (isObject(schema['items'])) return [exampleOf(schema['items'])]
    return exampleOfType(schema)
  }

  function exampleOfType(schema: JsonSchema): unknown {
    const { type, properties = {}, minimum = 0 } = schema
    switch (type) {
      case 'object':
        return Object.fromEntries(
          Object.entries(properties as object).map(([name, below]) => [name, exampleOf(below as object)]),
        )
      case 'integer':
        return minimum
      case 'boolean':
        return true
      default:
        return type === 'null' ? null : 'text'
    }
  }

  return {
    lift,
    exampleOf,
    schemas: () => Object.fromEntries([...lifted].map(([title, { schema }]) => [title, schema])),
  }
}

/** A reference to a named schema. */
export function referenceTo(name: string): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` }
}

/** A refinement that replaces the keywords of a schema. */
export function replaced(refinement: JsonSchema): JsonSchema {
  const keywords = [
    ...['type', 'items', 'minItems', 'maxItems', 'uniqueItems'],
    ...['properties', 'required', 'additionalProperties'],
  ]
  return { ...Object.fromEntries(keywords.map((keyword) => [keyword, undefined])), ...refinement }
}
