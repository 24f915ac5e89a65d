import { isObject } from '../../json-schema/count-checks.ts'

/** A JSON schema (2020-12) as far as documents are made of it; other keywords pass unchanged. */
export type JsonSchema = {
  readonly [keyword: string]: unknown
  readonly title?: string
  readonly examples?: readonly unknown[]
  readonly documented?: Readonly<Record<string, unknown>>
}

/** Keywords that hold one schema, a list of schemas, or schemas by name. */
const ONE = [
  ...['items', 'additionalProperties', 'unevaluatedItems', 'unevaluatedProperties', 'propertyNames'],
  ...['contains', 'not', 'if', 'then', 'else'],
]
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const MAPS = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions']

/** Returns a copy of the schema in which `change` has replaced every schema directly below it. */
export function mapSubschemas(schema: JsonSchema, change: (below: JsonSchema) => object): JsonSchema {
  const copy: Record<string, unknown> = { ...schema }
  for (const keyword of ONE) if (isSchema(copy[keyword])) copy[keyword] = change(copy[keyword])
  for (const keyword of LISTS) if (Array.isArray(copy[keyword])) copy[keyword] = copy[keyword].map(changed)
  for (const keyword of MAPS) {
    const map = copy[keyword]
    if (isSchema(map))
      copy[keyword] = Object.fromEntries(Object.entries(map).map(([name, below]) => [name, changed(below)]))
  }
  return copy

  function changed(below: unknown): unknown {
    return isSchema(below) ? change(below) : below
  }
}

/** Returns whether the value is a schema with keywords, and neither `true` nor `false`. */
export function isSchema(value: unknown): value is JsonSchema {
  return isObject(value)
}
