import type { ValidateFunction } from 'ajv'
import type { Ajv2020 } from 'ajv/dist/2020.js'
import type { FieldError } from '../problem-error.ts'
import { toFieldErrors } from './field-errors.ts'

type Schema = Readonly<Record<string, unknown>>

/** About one millisecond, and 3 MB where every check fails. */
const MAX_CHECKS = 10_000

/** Deeper than any schema and value that are in step: a schema that refers to itself at the same value. */
const MAX_DEPTH = 500

/** A pattern reads many characters in the time of another check. */
const CHARACTERS_PER_CHECK = 64

/** Keywords that describe, or hold schemas for references. */
const ANNOTATIONS = new Set(
  [
    ['$schema', '$id', '$anchor', '$dynamicAnchor', '$vocabulary', '$comment', '$defs', 'definitions'],
    ['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
    // What the OpenAPI document adds: src/http/openapi/components.ts.
    ['documented'],
  ].flat(),
)

/**
 * Returns whether validating `value` takes {@link MAX_CHECKS} checks of a keyword at most, and so can find that many
 * errors at most. Takes no longer than these checks itself. Which branch or pattern applies is not determined: each counts.
 */
export function isQuicklyChecked(root: object, value: unknown): boolean {
  let left = MAX_CHECKS
  let depth = 0
  // An anchor is searched in the whole schema.
  const targets = new Map<string, unknown>()

  function visit(schema: unknown, value: unknown): void {
    left--
    if (!isObject(schema) || left < 0) return
    if (++depth > MAX_DEPTH) left = -1
    for (const keyword in schema) {
      if (left < 0) break
      if (!ANNOTATIONS.has(keyword)) apply(keyword, schema[keyword], value)
    }
    depth--
  }

  function apply(keyword: string, argument: unknown, value: unknown): void {
    switch (keyword) {
      case 'allOf':
      case 'anyOf':
      case 'oneOf':
      case 'dependentSchemas':
      case 'dependencies':
        for (const schema of Object.values(argument as object)) visit(schema, value)
        return
      case 'not':
      case 'if':
      case 'then':
      case 'else':
        visit(argument, value)
        return
      case '$ref': {
        const reference = String(argument)
        if (!targets.has(reference)) targets.set(reference, resolveReference(root, reference))
        const target = targets.get(reference)
        if (target === undefined) left = -1
        else visit(target, value)
        return
      }
      case '$dynamicRef':
      case '$recursiveRef':
        left = -1
        return
      case 'properties':
        for (const name in argument as Schema) {
          if (isObject(value) && Object.hasOwn(value, name)) visit((argument as Schema)[name], value[name])
          else left--
        }
        return
      case 'patternProperties':
        for (const schema of Object.values(argument as Schema)) visitMembers(schema, value)
        return
      case 'additionalProperties':
      case 'unevaluatedProperties':
        visitMembers(argument, value)
        return
      case 'propertyNames':
        if (isObject(value)) for (const name in value) visit(argument, name)
        return
      case 'items':
      case 'contains':
      case 'unevaluatedItems':
        visitItems(argument, value)
        return
      case 'prefixItems':
        if (Array.isArray(value))
          for (const [index, schema] of (argument as unknown[]).entries()) visit(schema, value[index])
        return
      case 'uniqueItems':
        if (Array.isArray(value)) left -= value.length
        return
      default:
        left -= sizeOf(argument)
        if (typeof value === 'string') left -= value.length / CHARACTERS_PER_CHECK
    }
  }

  function visitMembers(schema: unknown, value: unknown): void {
    if (!isObject(value)) return
    for (const name in value) {
      left -= name.length / CHARACTERS_PER_CHECK
      if (left < 0) return
      visit(schema, value[name])
    }
  }

  function visitItems(schema: unknown, value: unknown): void {
    if (!Array.isArray(value)) return
    for (const item of value) {
      if (left < 0) return
      visit(schema, item)
    }
  }

  visit(root, value)
  return left >= 0
}

/** Returns the schema that a `$ref` names within its document; undefined where there is none. */
export function resolveReference(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined
  const fragment = decode(reference.slice(1))
  if (fragment === null) return undefined
  if (fragment !== '' && !fragment.startsWith('/')) return findAnchor(root, fragment)
  const names = fragment.split('/').slice(1)
  return names
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (found, name) =>
        typeof found === 'object' && found !== null && Object.hasOwn(found, name)
          ? (found as Schema)[name]
          : undefined,
      root,
    )
}

function findAnchor(schema: unknown, anchor: string): unknown {
  if (typeof schema !== 'object' || schema === null) return undefined
  const { $anchor, $dynamicAnchor } = schema as Schema
  if ($anchor === anchor || $dynamicAnchor === anchor) return schema
  for (const inner of Object.values(schema)) {
    const found = findAnchor(inner, anchor)
    if (found !== undefined) return found
  }
  return undefined
}

function decode(fragment: string): string | null {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return null
  }
}

/** How much there is to compare a value with: an `enum` may list objects. */
function sizeOf(argument: unknown): number {
  if (typeof argument !== 'object' || argument === null) return 1
  return Object.values(argument).reduce<number>((size, inner) => size + sizeOf(inner), 1)
}

/** Returns whether the value has members by name: no list, and not null. */
export function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Returns a function that compiles checks whose errors are bounded; a check returns none for a value that fits. It finds
 * all errors of a value that is quickly checked, and the first one of any other: `allErrors` of ajv ends with the value
 * only. What finds all is compiled when it is needed.
 */
export function createBoundedCompiler(
  createAjv: (options: { allErrors: boolean }) => Pick<Ajv2020, 'compile'>,
): (schema: object) => (value: unknown) => FieldError[] {
  const [findingFirst, findingAll] = [createAjv({ allErrors: false }), createAjv({ allErrors: true })]
  return (schema) => {
    const findFirst = findingFirst.compile(schema)
    let findAll: ValidateFunction | null = null
    return (value) => {
      if (findFirst(value)) return []
      if (!isQuicklyChecked(schema, value)) return toFieldErrors(findFirst.errors ?? [])
      findAll ??= findingAll.compile(schema)
      return findAll(value) ? [] : toFieldErrors(findAll.errors ?? [])
    }
  }
}
