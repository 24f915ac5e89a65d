import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { toFieldErrors } from '../ajv-errors.ts'
import type { FieldError } from '../errors.ts'
import { isTooDemanding, runWithTimeLimit } from './time-limit.ts'

/** Says what is wrong with a payload; empty when it fits. Pointers start at the payload. */
export type CheckPayload = (data: unknown) => FieldError[]

/** `problems`: what is wrong with the schema, each a pointer into it and a reason. */
type Compiled = { check: CheckPayload; problems: readonly string[] }

const PAYLOAD_FORMATS = [
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

/** Keywords whose values are data and no schema. */
const DATA_KEYWORDS = ['const', 'enum', 'default', 'examples']

/** Returns a function that compiles payload schemas: JSON schema draft 2020-12, in ajv's strict mode. */
export function createSchemaCompiler(): (schema: object) => Compiled {
  let problems: string[] = []
  const note = (...args: unknown[]): void => {
    problems.push(
      ` ${args.map(String).join(' ').replace('strict mode: ', '').replace(' ignored in schema', '')}`,
    )
  }
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    allowUnionTypes: true,
    // Not `true`, which throws at the first problem: the logger below collects all of them.
    strictSchema: 'log',
    strictTypes: 'log',
    strictTuples: 'log',
    logger: { log: note, warn: note, error: note },
  })
  ajvFormats.default(ajv, [...PAYLOAD_FORMATS])

  return (schema) => {
    problems = outsideReferences(schema)
    if (problems.length === 0) problems = formProblems(ajv, schema)
    const validate = problems.length === 0 ? compileOrNote(ajv, schema, note) : null
    if (validate === null) return { check: () => [], problems: [...new Set(problems)] }
    return { check: toCheck(validate, isTooDemanding(schema)), problems: [...new Set(problems)] }
  }
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

/** A schema that could keep the process busy for long is checked within a time limit. */
function toCheck(validate: ValidateFunction, isDemanding: boolean): CheckPayload {
  const check: CheckPayload = (data) => (validate(data) ? [] : toFieldErrors(validate.errors ?? []))
  if (!isDemanding) return check
  return (data) =>
    runWithTimeLimit(() => check(data)) ?? [
      { pointer: '', code: 'invalid', detail: 'takes too long to check' },
    ]
}

/** A schema stands alone: nothing is read from elsewhere, and no schema can refer to another one. */
function outsideReferences(schema: unknown, pointer = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([name, value]: [string, unknown]) => {
    const at = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (DATA_KEYWORDS.includes(name)) return []
    if (typeof value !== 'string') return outsideReferences(value, at)
    if (name === '$id') return [`${at} is not allowed: a schema stands alone`]
    const isReference = name === '$ref' || name === '$dynamicRef'
    return isReference && !value.startsWith('#') ? [`${at} must begin with #: a schema stands alone`] : []
  })
}
