import { Ajv2020, type Options } from 'ajv/dist/2020.js'
import { toFieldErrors } from '../../ajv-errors.ts'
import { invalidFields, checksOverloaded } from '../../errors.ts'
import { createBoundedCheck, isQuicklyChecked } from '../../json-schema/count-checks.ts'
import type { ApiDependencies } from '../api.ts'
import type { Route, RouteRequest } from '../route.ts'
import type { Actor } from '../../domain/actor.ts'
import { belowData } from '../../catalogue/catalogue.ts'
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { ACCOUNT_FORMATS } from '../../accounts/account-fields.ts'

/** The formats that schemas of bodies and queries may name. */
export const FORMATS = { ...ACCOUNT_FORMATS, 'date-time': isDateTime }

/** `verbose`: an error has the value too, which tells null from a value of another type. */
const OPTIONS: Options = {
  verbose: true,
  strict: true,
  allowUnionTypes: true,
  formats: FORMATS,
  keywords: ['documented'],
}
const findFirst = new Ajv2020(OPTIONS)
const findAll = new Ajv2020({ ...OPTIONS, allErrors: true })

/** Compiles a body schema. The check throws 422 naming every field that the schema or the rules refuse. */
export function bodyCheck(
  body: NonNullable<Route['body']>,
): (request: RouteRequest, dependencies: ApiDependencies) => Promise<void> {
  const { schema } = body
  const check = createBoundedCheck(schema, findFirst.compile(schema), () => findAll.compile(schema))
  const { rules = () => [] } = body
  return async (request, dependencies) => {
    const value = request.body
    const bySchema = toFieldErrors(check(value))
    const named = new Set(bySchema.map(({ pointer }) => pointer))
    // Rules look at each item too: not at those of a long list that is refused anyway.
    const hasRules = isFields(value) && (bySchema.length === 0 || isQuicklyChecked(schema, value))
    const byRules = hasRules ? await rules(value, dependencies, request) : []
    const errors = [...bySchema, ...byRules.filter(({ pointer }) => !named.has(pointer))]
    if (errors.length > 0) throw invalidFields(errors)
  }
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type Dependencies = Pick<ApiDependencies, 'catalogue' | 'payloadThreads' | 'rateLimits' | 'logger'>

/**
 * Checks a payload that may take long, in a thread; any other one was checked with the rest of the body. Throws 422
 * naming its bad fields, also where it takes too long, 429 when the member has used up its time, or 503 when too many
 * wait. Releases `data`, of which `json` is the text.
 */
export async function checkCostlyPayload(
  { catalogue, payloadThreads, rateLimits, logger }: Dependencies,
  { organisationId, memberId }: Actor,
  body: { event: string; data: object },
  json: string,
): Promise<void> {
  const { event: eventKey } = body
  const isCostly = catalogue.isCostly(eventKey, body.data)
  // Parsed it takes up to twenty times the memory of its text, for as long as the request waits.
  body.data = {}
  if (!isCostly) return
  const member = `${organisationId}/${memberId}`
  await rateLimits.validation?.check(member)
  const verdict = await payloadThreads.check({ organisationId, eventKey, json })
  if (verdict.kind === 'busy') throw checksOverloaded()
  await rateLimits.validation?.add(member, Math.ceil(verdict.ms))
  if (verdict.kind === 'stopped') {
    logger.warn({ event: 'payload.check_stopped', organisationId, eventKey }, 'payload.check_stopped')
    throw invalidFields([{ pointer: '/data', code: 'invalid', detail: 'takes too long to check' }])
  }
  if (verdict.errors.length > 0) throw invalidFields(belowData(verdict.errors))
}

/** Accepts RFC 3339 that a `Date` can represent, and so no leap second. */
function isDateTime(text: string): boolean {
  const rfc3339 = fullFormats['date-time'] as { validate(text: string): boolean }
  return rfc3339.validate(text) && !Number.isNaN(Date.parse(text))
}
