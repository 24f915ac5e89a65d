import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { TSchema } from 'typebox'
import { toFieldErrors } from '../ajv-errors.ts'
import { invalidFields } from '../errors.ts'

/** Compiles a body schema once; the check throws 422 naming every bad field. */
export function bodyCheck(schema: TSchema): (value: unknown) => void {
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true })
  const validate: ValidateFunction = ajv.compile(schema)
  return (value) => {
    if (!validate(value)) throw invalidFields(toFieldErrors(validate.errors ?? []))
  }
}
