import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { toFieldErrors } from '../../ajv-errors.ts'
import { invalidFields } from '../../errors.ts'
import type { ApiDependencies } from '../api.ts'
import type { Route, RouteRequest } from '../route.ts'
import { FORMATS } from './formats.ts'

/** Bounds the answer, so that a small request cannot cause a huge one. */
export const MAX_ERRORS = 100

/** Compiles a body schema. The check throws 422 naming every field that the schema or the rules refuse. */
export function bodyCheck(
  body: NonNullable<Route['body']>,
): (request: RouteRequest, dependencies: ApiDependencies) => Promise<void> {
  const ajv = new Ajv2020({
    allErrors: true,
    verbose: true,
    strict: true,
    allowUnionTypes: true,
    formats: FORMATS,
  })
  const validate: ValidateFunction = ajv.compile(body.schema)
  const { rules = () => [] } = body
  return async (request, dependencies) => {
    const value = request.body
    const bySchema = validate(value) ? [] : toFieldErrors(validate.errors ?? [])
    const named = new Set(bySchema.map(({ pointer }) => pointer))
    const byRules = isFields(value) ? await rules(value, dependencies, request) : []
    const errors = [...bySchema, ...byRules.filter(({ pointer }) => !named.has(pointer))]
    if (errors.length > 0) throw invalidFields(errors.slice(0, MAX_ERRORS))
  }
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
