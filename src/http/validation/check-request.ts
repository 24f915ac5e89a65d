import { createHash } from 'node:crypto'
import { Ajv2020, type Options } from 'ajv/dist/2020.js'
import type { TObject } from 'typebox'
import { toFieldErrors } from '../../json-schema/field-errors.ts'
import { badRequest, invalidFields, overloaded, type FieldError } from '../../problem-error.ts'
import { createBoundedCompiler, isObject, isQuicklyChecked } from '../../json-schema/count-checks.ts'
import type { ApiDependencies } from '../api.ts'
import type { Route, RouteRequest } from '../route.ts'
import type { Actor, Caller } from '../../domain/actor.ts'
import type { IdempotentRequest } from '../../db/queries/idempotency.ts'
import type { TraceContext } from '../../observability/tracing.ts'
import { belowData } from '../../catalogue/catalogue.ts'
import { isInstant } from '../../domain/text-rules.ts'
import { ACCOUNT_FORMATS } from '../../accounts/account-fields.ts'

/** `verbose`: an error has the value too, which tells null from a value of another type. */
const OPTIONS: Options = {
  verbose: true,
  strict: true,
  allowUnionTypes: true,
  formats: { ...ACCOUNT_FORMATS, 'date-time': isInstant },
  keywords: ['documented'],
}
const compileBody = createBoundedCompiler((options) => new Ajv2020({ ...OPTIONS, ...options }))
const ofQueries = new Ajv2020({ ...OPTIONS, allErrors: true, useDefaults: true })

/** Compiles a body schema. The check throws 422 naming every field that the schema or the rules refuse. */
export function bodyCheck(
  body: NonNullable<Route['body']>,
): (request: RouteRequest, dependencies: ApiDependencies) => Promise<void> {
  const { schema, rules = () => [] } = body
  const check = compileBody(schema)
  return async (request, dependencies) => {
    const value = request.body
    const bySchema = check(value)
    const named = new Set(bySchema.map(({ pointer }) => pointer))
    // Rules look at each item too: not at those of a long list that is refused anyway.
    const hasRules = isObject(value) && (bySchema.length === 0 || isQuicklyChecked(schema, value))
    const byRules = hasRules ? await rules(value, dependencies, request) : []
    const errors = [...bySchema, ...byRules.filter(({ pointer }) => !named.has(pointer))]
    if (errors.length > 0) throw invalidFields(errors)
  }
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
  if (verdict.kind === 'busy') throw overloaded('Too many large payloads wait to be checked.', 2)
  await rateLimits.validation?.add(member, Math.ceil(verdict.ms))
  if (verdict.kind === 'stopped') {
    logger.warn({ event: 'payload.check_stopped', organisationId, eventKey })
    throw invalidFields([{ pointer: '/data', code: 'invalid', detail: 'takes too long to check' }])
  }
  if (verdict.errors.length > 0) throw invalidFields(belowData(verdict.errors))
}

const WHOLE_NUMBER = /^-?(?:0|[1-9]\d*)$/

/**
 * Compiles the schema of a route's query parameters. The check parses the query of the URL and returns the parameters
 * in the schema's types, with defaults; it throws 422 naming every parameter that is unknown, repeated or not valid.
 */
export function queryCheck(schema: TObject): (text: string) => unknown {
  const validate = ofQueries.compile(schema)
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

/** A token, or the same in quotes (a structured-field string, as the IETF draft writes it). */
const IDEMPOTENCY_KEY = /^(?:"([A-Za-z0-9._:-]{1,255})"|([A-Za-z0-9._:-]{1,255}))$/

/** The grammar, as the OpenAPI document states it. */
export const IDEMPOTENCY_KEY_PATTERN = IDEMPOTENCY_KEY.source

/** Parses the `Idempotency-Key` header. Throws 400 when it is malformed, empty or sent twice. */
export function parseIdempotencyKey(
  header: string | string[],
  caller: Caller,
  operation: string,
  bodyText: string,
): IdempotentRequest {
  const match = IDEMPOTENCY_KEY.exec(String(header))
  const key = match?.[1] ?? match?.[2]
  if (key === undefined) {
    throw badRequest(
      'invalid_idempotency_key',
      'Idempotency-Key takes 1 to 255 of A-Z a-z 0-9 . _ : - and is sent once.',
    )
  }
  const { organisationId, memberId } = caller
  return { organisationId, memberId, operation, key, digest: createHash('sha256').update(bodyText).digest() }
}

/**
 * W3C Trace Context, 3.2: version, trace id, parent id and flags in lower-case hexadecimal digits. The version `ff` and
 * ids of zeros only are invalid. A later version may have further fields after another hyphen; a comma would mean that
 * the header was sent more than once.
 */
const TRACEPARENT =
  /^(?!ff)(?<version>[0-9a-f]{2})-(?!0{32})(?<traceId>[0-9a-f]{32})-(?!0{16})(?<spanId>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<rest>-[^,]*)?$/

/** The only flag that is read: the caller records its trace. */
const SAMPLED_FLAG = 0x01

/** Parses the `traceparent` header; null when it is malformed, or sent more than once. */
export function parseTraceparent(header: string): TraceContext | null {
  const { version, traceId, spanId, flags = '', rest } = TRACEPARENT.exec(header)?.groups ?? {}
  if (traceId === undefined || spanId === undefined) return null
  if (version === '00' && rest !== undefined) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) !== 0 }
}
