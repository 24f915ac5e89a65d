import { Ajv2020, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { toFieldErrors } from '../json-schema/field-errors.ts'
import type { FieldError } from '../problem-error.ts'
import { createBoundedCompiler, isQuicklyChecked, resolveReference } from '../json-schema/count-checks.ts'
import { slowKeywords, takesConstantTime, visitKeywords } from '../json-schema/slow-keywords.ts'

/** Says what is wrong with a payload; empty when it fits. Pointers start at the payload. */
export type CheckPayload = (data: unknown) => FieldError[]

/** `problems`: what is wrong with the schema, each a pointer into it and a reason. */
export type CompiledSchema = {
  /** For data that is not costly. */
  check: CheckPayload
  /** Whether checking `data` may take long, so that it is done in a thread. */
  isCostly: (data: unknown) => boolean
  problems: readonly string[]
}

/** The formats that payload schemas may name. */
export const PAYLOAD_FORMATS = [
  'date-time',
  'date',
  'time',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uri',
  'uuid',
] as const

const DRAFT = 'https://json-schema.org/draft/2020-12/schema'

/** Returns a function that compiles payload schemas: JSON schema draft 2020-12, in ajv's strict mode. */
export function createSchemaCompiler(): (schema: object) => CompiledSchema {
  let problems: string[] = []
  const note = (...args: unknown[]): void => {
    problems.push(
      ` ${args.map(String).join(' ').replace('strict mode: ', '').replace(' ignored in schema', '')}`,
    )
  }
  const strict = createAjv({
    allErrors: true,
    // Not `true`, which throws at the first problem: the logger below collects all of them.
    strictSchema: 'log',
    strictTypes: 'log',
    strictTuples: 'log',
    logger: { log: note, warn: note, error: note },
    code: { regExp: createPatternReader(note) },
  })

  return (schema) => {
    problems = [...badReferences(schema), ...formProblems(strict, schema)]
    const findAll = problems.length === 0 ? compileOrNote(strict, schema, note) : null
    const found = [...new Set(problems)]
    if (findAll === null || found.length > 0)
      return { check: () => [], isCostly: () => false, problems: found }
    const isSlow = slowKeywords(schema).length > 0
    const isConstant = takesConstantTime(schema)
    return {
      check: (data) => (findAll(data) ? [] : toFieldErrors(findAll.errors ?? [])),
      isCostly: (data) => isSlow || !(isConstant || isQuicklyChecked(schema, data)),
      problems: [],
    }
  }
}

/**
 * Returns a function that compiles the checks of costly payloads. They name the first error only where there may be too
 * many. The schemas are valid.
 */
export function createCostlyCompiler(): (schema: object) => CheckPayload {
  return createBoundedCompiler((options) =>
    createAjv({ strict: false, logger: false, validateSchema: false, ...options }),
  )
}

function createAjv(options: Options): Ajv2020 {
  const ajv = new Ajv2020({ verbose: true, allowUnionTypes: true, ownProperties: true, ...options })
  ajvFormats.default(ajv, [...PAYLOAD_FORMATS])
  return ajv
}

/** Takes a pattern that is none for an empty one, after noting it: ajv would stop at the first. */
function createPatternReader(note: (problem: unknown) => void) {
  const read = (pattern: string, flags: string): RegExp => {
    try {
      return new RegExp(pattern, flags)
    } catch (error) {
      note(describe(error))
      return new RegExp('')
    }
  }
  return Object.assign(read, { code: 'new RegExp' })
}

/** Returns what the meta-schema refuses, one problem for each place. */
function formProblems(ajv: Ajv2020, schema: object): string[] {
  if ('$schema' in schema && schema.$schema !== DRAFT) return [`/$schema must be ${DRAFT}`]
  if (ajv.validateSchema(schema) === true) return []
  const seen = new Set<string>()
  return toFieldErrors(ajv.errors ?? []).flatMap(({ pointer, detail }) => {
    if (seen.has(pointer)) return []
    seen.add(pointer)
    return [`${pointer} ${detail}`]
  })
}

function compileOrNote(
  ajv: Ajv2020,
  schema: object,
  note: (problem: string) => void,
): ValidateFunction | null {
  try {
    return ajv.compile(schema)
  } catch (error) {
    const isEndless = error instanceof RangeError
    note(isEndless ? 'refers to itself without an end' : describe(error))
    return null
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A schema stands alone: nothing is read from elsewhere, and no schema can refer to another one. */
function badReferences(root: object): string[] {
  return visitKeywords(root, (keyword, argument, pointer) => {
    if (typeof argument !== 'string') return []
    if (keyword === '$id') return [`${pointer} is not allowed: a schema stands alone`]
    if (keyword !== '$ref' && keyword !== '$dynamicRef') return []
    if (!argument.startsWith('#')) return [`${pointer} must begin with #: a schema stands alone`]
    return resolveReference(root, argument) === undefined ? [`${pointer} refers to nothing: ${argument}`] : []
  })
}
