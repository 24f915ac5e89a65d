import { jsonPointer } from '../domain/text-rules.ts'
import { isObject } from './count-checks.ts'

/** Keywords whose value maps names to schemas. */
const MAPS = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])

/** Keywords whose values are data and no schema. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'dependentRequired', 'x-enum-descriptions'])

type Visit = (keyword: string, argument: unknown, pointer: string, schema: object) => readonly string[]

/** Calls `visit` for each keyword of the schema and of those within it, with the keyword's JSON pointer. */
export function visitKeywords(schema: unknown, visit: Visit, pointer = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([keyword, argument]: [string, unknown]) => {
    const at = pointer + jsonPointer([keyword])
    const found = Array.isArray(schema) ? [] : visit(keyword, argument, at, schema)
    if (DATA.has(keyword)) return found
    if (!MAPS.has(keyword) || typeof argument !== 'object' || argument === null)
      return [...found, ...visitKeywords(argument, visit, at)]
    const inner = Object.entries(argument).flatMap(([name, schema]) =>
      visitKeywords(schema, visit, at + jsonPointer([name])),
    )
    return [...found, ...inner]
  })
}

/** Returns a copy of the schema in which `change` has replaced every schema directly below it. */
export function mapSubschemas<Schema extends object>(
  schema: Schema,
  change: (below: Schema) => object,
): Schema {
  const changed = (below: unknown): unknown => (isObject(below) ? change(below as Schema) : below)
  const copy = Object.entries(schema).map(([keyword, argument]: [string, unknown]) => {
    if (DATA.has(keyword)) return [keyword, argument]
    if (MAPS.has(keyword) && isObject(argument))
      return [
        keyword,
        Object.fromEntries(Object.entries(argument).map(([name, below]) => [name, changed(below)])),
      ]
    return [keyword, Array.isArray(argument) ? argument.map(changed) : changed(argument)]
  })
  return Object.fromEntries(copy) as Schema
}

/**
 * Returns the keywords that may take time out of proportion to the value, each with its pointer and the reason. Every
 * other keyword takes time in proportion to what {@link isQuicklyChecked} counts.
 */
export function slowKeywords(schema: object): string[] {
  return visitKeywords(schema, (keyword, argument, pointer, { items }: { items?: unknown }) => {
    switch (keyword) {
      case 'pattern':
        return slowPatterns([String(argument)], pointer)
      case 'patternProperties':
        return slowPatterns(Object.keys(argument as object), pointer)
      case 'uniqueItems':
        if (argument !== true || isScalar(items)) return []
        return [
          `${pointer} compares every item with every other, unless \`items\` has a type without members`,
        ]
      case '$dynamicRef':
      case '$recursiveRef':
        return [`${pointer} refers to a schema that is known only while a payload is checked`]
      default:
        return []
    }
  })
}

function slowPatterns(patterns: readonly string[], pointer: string): string[] {
  return patterns
    .filter((pattern) => !isLinear(pattern))
    .map((pattern) => `${pointer} may take longer than in proportion to the text: ${pattern}`)
}

const CHARACTER = /\\[pPu]\{[^}]*\}|\\.|\[(?:\\.|[^\\\]])*\]/gsu
const FIXED_COUNT = /\{(\d+)\}/g
const VARIABLE_COUNT = /[*+?]|\{\d+,\d*\}/g

/** Characters after a repetition of variable length. They are compared again for each length that it may have. */
const MAX_AFTER_VARIABLE = 16

/**
 * Returns whether a pattern takes time in proportion to the text: it is anchored at the start, and has one group, which
 * is not repeated, and one repetition of a variable length at most, with little after it. Errs on the safe side.
 */
function isLinear(pattern: string): boolean {
  if (/\\[1-9k]/.test(pattern)) return false
  const shape = pattern.replace(CHARACTER, 'C').replace('(?:', '(')
  if (!/^\^[^()|]*(?:\([^()]*\)(?![*+?{])[^()|]*)?$/.test(shape)) return false
  if (shape.includes('(?')) return false
  const [, after = '', ...others] = shape.split(VARIABLE_COUNT)
  const counted = [...after.matchAll(FIXED_COUNT)].reduce((sum, [, count]) => sum + Number(count), 0)
  return others.length === 0 && after.length + counted <= MAX_AFTER_VARIABLE
}

/** As ajv sees it, which then looks items up instead of comparing them. */
function isScalar(items: unknown): boolean {
  if (typeof items !== 'object' || items === null || !('type' in items)) return false
  return [items.type].flat().every((type) => type !== 'object' && type !== 'array')
}

/** Keywords that say nothing about each member or item. Each is applied once to a value, those within it included. */
const CONSTANT = new Set(
  [
    ['type', 'properties', 'required', 'enum', 'const', 'format', 'pattern', 'if', 'then', 'else'],
    ['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
    ['minItems', 'maxItems', 'minProperties', 'maxProperties'],
    ['$schema', '$comment', 'title', 'description', 'default', 'examples', 'deprecated'],
  ].flat(),
)

/** Returns whether the number of checks is that of the schema's keywords, some hundreds at most, whatever the value. */
export function takesConstantTime(schema: object): boolean {
  const isConstant = visitKeywords(schema, (keyword) => (CONSTANT.has(keyword) ? [] : [keyword])).length === 0
  return isConstant && JSON.stringify(schema).length <= MAX_CONSTANT_LENGTH
}

/** Characters of JSON. */
const MAX_CONSTANT_LENGTH = 32_768
