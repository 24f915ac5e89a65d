import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { toFieldErrors } from '../ajv-errors.ts'
import type { FieldError } from '../errors.ts'
import { eventKeys } from './catalogue.ts'

/** Says what is wrong with an event's `data`; empty when it fits. Pointers start at the envelope: `/data/…`. */
export type PayloadValidator = (eventKey: string, data: unknown) => FieldError[]

/** Compiles every payload schema once. A key without a schema still asks for a JSON object (spec 2.2). */
export function createPayloadValidator(): PayloadValidator {
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true })
  ajvFormats.default(ajv, ['date-time'])
  const validateObject = ajv.compile({ type: 'object' })
  const validators = new Map(
    eventKeys.flatMap(({ key, schema }) => (schema === null ? [] : [[key, ajv.compile(schema)] as const])),
  )

  return (eventKey, data) => {
    const validate = validators.get(eventKey) ?? validateObject
    return validate(data) ? [] : toFieldErrors(validate.errors ?? [], '/data')
  }
}
