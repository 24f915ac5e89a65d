import { Ajv2020 } from 'ajv/dist/2020.js'
import type { TObject } from 'typebox'
import { toFieldErrors } from '../../ajv-errors.ts'
import { invalidFields, type FieldError } from '../../errors.ts'
import { FORMATS } from './check-body.ts'

const WHOLE_NUMBER = /^-?(?:0|[1-9]\d*)$/

/**
 * Compiles the schema of a route's query parameters. The check parses the query of the URL and returns the parameters
 * in the schema's types, with defaults; it throws 422 naming every parameter that is unknown, repeated or not valid.
 */
export function queryCheck(schema: TObject): (text: string) => unknown {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    allowUnionTypes: true,
    useDefaults: true,
    formats: FORMATS,
    keywords: ['documented'],
  })
  const validate = ajv.compile(schema)
  return (text) => {
    const given = [...new URLSearchParams(text)]
    const repeated = repeatedNames(
      given.map(([name]) => name).filter((name) => Object.hasOwn(schema.properties, name)),
    )
    const parameters = Object.fromEntries(
      given.map(([name, value]) => [name, typed(schema.properties[name], value)]),
    )
    const bySchema = validate(parameters) ? [] : toFieldErrors(validate.errors ?? [])
    const errors = [...repeated, ...bySchema]
    if (errors.length > 0) throw invalidFields(errors)
    return parameters
  }
}

/** Converts the text to a number where the schema has an integer and the text is one. */
function typed(schema: object | undefined, text: string): string | number {
  const wantsNumber = schema !== undefined && 'type' in schema && schema.type === 'integer'
  return wantsNumber && WHOLE_NUMBER.test(text) ? Number(text) : text
}

function repeatedNames(names: readonly string[]): FieldError[] {
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) < index))
  return [...repeated].map((name) => ({
    pointer: `/${name}`,
    code: 'duplicate',
    detail: 'may be given only once',
  }))
}
