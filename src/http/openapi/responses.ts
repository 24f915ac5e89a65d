import { PROBLEMS, type ProblemCode } from '../../domain/problems.ts'
import type { Route, Links } from '../route.ts'
import { referenceTo } from './components.ts'
import { EXAMPLE_IDS } from '../schemas/common.ts'
import { PLATFORM_ID_PATTERN, UUID_PATTERN } from '../../ids.ts'

/** draft-ietf-httpapi-ratelimit-headers-11; in every answer to a valid key, refusals included. */
const RATE_LIMIT_HEADERS = {
  'RateLimit-Policy': {
    description: 'Where a limit is set: its name, how many it allows (q), and within how many seconds (w)',
    schema: { type: 'string' },
    example: '"management";q=1000;w=10',
  },
  RateLimit: {
    description: 'Where a limit is set: what is left of it (r), and in how many seconds all is back (t)',
    schema: { type: 'string' },
    example: '"management";r=997;t=9',
  },
}

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait, at least 1', schema: { type: 'string' }, example: '7' },
}

const ALLOW = {
  Allow: {
    description: 'The methods that the path answers',
    schema: { type: 'string' },
    example: 'GET, HEAD',
  },
}

/** The headers that responses refer to. */
export const HEADERS = { ...RATE_LIMIT_HEADERS, ...RETRY_AFTER, ...ALLOW }

/** Refusals that several operations share, by the name of their component. */
const REFUSALS = {
  Unreadable: {
    status: 400,
    description: 'The request cannot be read; see `code`',
    codes: [
      'malformed_request',
      'malformed_path',
      'malformed_json',
      'too_deep',
      'incomplete_body',
      'invalid_cursor',
      'invalid_idempotency_key',
      'repeated_host',
    ],
  },
  Unauthenticated: {
    status: 401,
    description: 'No valid API key, operator key or session',
    codes: ['unauthenticated'],
  },
  Forbidden: {
    status: 403,
    description: 'Permission or scope missing, or a session is used from a page of another origin',
    codes: ['missing_permission', 'missing_scope', 'cross_site'],
  },
  NotFound: { status: 404, description: 'No such organisation or resource', codes: ['not_found'] },
  MethodNotAllowed: {
    status: 405,
    description: 'The path does not answer this method',
    headers: ALLOW,
    codes: ['method_not_allowed'],
  },
  RequestTimeout: {
    status: 408,
    description: 'The request arrived too slowly',
    codes: ['request_timeout'],
  },
  BodyTooLarge: { status: 413, description: 'Body too large', codes: ['body_too_large'] },
  UnsupportedMediaType: { status: 415, description: 'Not JSON in UTF-8', codes: ['unsupported_media_type'] },
  WrongHost: {
    status: 421,
    description: 'A session is opened or used at another host than that of the service',
    codes: ['wrong_host'],
  },
  Invalid: {
    status: 422,
    description: 'Fields or parameters are not valid',
    codes: ['invalid_fields'],
  },
  InvalidOrReused: {
    status: 422,
    description:
      'Fields or parameters are not valid, or the `Idempotency-Key` was sent with another body before',
    codes: ['invalid_fields', 'idempotency_key_reused'],
  },
  TooManyRequests: {
    status: 429,
    description: 'Too many requests with this key, or too many without a valid key from this address',
    headers: { ...RATE_LIMIT_HEADERS, ...RETRY_AFTER },
    codes: ['rate_limited'],
  },
  TooManyFromAddress: {
    status: 429,
    description: 'Too many requests from this address',
    headers: { ...RATE_LIMIT_HEADERS, ...RETRY_AFTER },
    codes: ['rate_limited'],
  },
  HeadersTooLarge: { status: 431, description: 'Headers too large', codes: ['headers_too_large'] },
  InternalError: { status: 500, description: 'A fault of this service', codes: ['internal_error'] },
  Unavailable: {
    status: 503,
    description: 'The database cannot be reached, or the process has too many connections; see Retry-After',
    headers: RETRY_AFTER,
    codes: ['unavailable', 'too_many_connections'],
  },
  UnavailableOrOverloaded: {
    status: 503,
    description:
      'The database cannot be reached, or the process has too many connections, or too many bodies are being read; see Retry-After',
    headers: RETRY_AFTER,
    codes: ['unavailable', 'too_many_connections', 'overloaded'],
  },
} as const satisfies Record<
  string,
  { status: number; description: string; headers?: object; codes: readonly ProblemCode[] }
>

type RefusalName = keyof typeof REFUSALS

/** The components of the refusals that several operations share. */
export function refusalComponents(): Record<string, object> {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([name, { description, codes, ...rest }]) => [
      name,
      {
        description,
        ...('headers' in rest ? { headers: headerReferences(rest.headers) } : {}),
        content: problemContent(codes),
      },
    ]),
  )
}

/** Returns the refusals that routes of this kind have in common, by status. */
export function commonRefusals(route: Route): Record<string, object> {
  const { access, body, query, sameOrigin = false } = route
  const hasKey = access.kind !== 'open'
  const names: RefusalName[] = [
    'Unreadable',
    'MethodNotAllowed',
    'RequestTimeout',
    'HeadersTooLarge',
    'InternalError',
    body === undefined ? 'Unavailable' : 'UnavailableOrOverloaded',
  ]
  if (hasKey) names.push('TooManyRequests')
  else if (route.countsAddress !== false) names.push('TooManyFromAddress')
  // While its organisation is being erased, a key is answered 404 everywhere.
  if (hasKey) names.push('Unauthenticated', 'NotFound')
  const takesSessions = hasKey && (access.kind !== 'key' || access.sessions !== false)
  if (takesSessions || sameOrigin) names.push('Forbidden', 'WrongHost')
  if (body !== undefined) names.push('BodyTooLarge', 'UnsupportedMediaType')
  if (body !== undefined || query !== undefined)
    names.push(route.idempotent === true ? 'InvalidOrReused' : 'Invalid')
  return Object.fromEntries(
    names.map((name) => [String(REFUSALS[name].status), { $ref: `#/components/responses/${name}` }]),
  )
}

/** The content of a refusal, with an example of each code. */
export function problemContent(codes: readonly ProblemCode[]): object {
  const examples = Object.fromEntries(codes.map((code) => [code, problemExample(code)]))
  return { 'application/problem+json': { schema: referenceTo('Problem'), examples } }
}

/** Returns references to headers by their names. */
function headerReferences(headers: object): Record<string, object> {
  return Object.fromEntries(
    Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  )
}

/** The headers of an answer to a valid key. */
export function rateLimitHeaders(): Record<string, object> {
  return headerReferences(RATE_LIMIT_HEADERS)
}

function problemExample(code: ProblemCode): object {
  const { status, title, cause, cure } = PROBLEMS[code]
  const value = { type: `urn:posthorn:problem:${code}`, title, status, code, detail: cause }
  const errors = [{ pointer: '/url', code: 'required', detail: 'is required' }]
  return {
    summary: cause,
    description: cure,
    value: code === 'invalid_fields' ? { ...value, errors } : value,
  }
}

/**
 * Returns the links of an answer. Parameters of the target's path that the request had too are passed on. Throws for an
 * operation that does not exist.
 */
export function linksOf(route: Route, links: Links, routes: readonly Route[]): Record<string, object> {
  const own = new Set(pathParameters(route.path))
  return Object.fromEntries(
    Object.entries(links).map(([operationId, given]) => {
      const target = routes.find((candidate) => candidate.operationId === operationId)
      if (target === undefined) throw new Error(`a link leads to ${operationId}, which does not exist`)
      const inherited = pathParameters(target.path)
        .filter((name) => own.has(name))
        .map((name): [string, string] => [name, `$request.path.${name}`])
      return [operationId, { operationId, parameters: { ...Object.fromEntries(inherited), ...given } }]
    }),
  )
}

/** The platform chooses these ids; all others are made by Posthorn. */
const GIVEN_ID = { type: 'string', pattern: PLATFORM_ID_PATTERN }
const OWN_ID = { type: 'string', format: 'uuid', pattern: UUID_PATTERN }

/** What each parameter of a path is, by its name. */
const PARAMETERS: Readonly<Record<string, { description: string; schema: object; example: string }>> = {
  orgId: { description: 'Id of the organisation', schema: GIVEN_ID, example: 'org_camping' },
  memberId: { description: 'Id of the member', schema: GIVEN_ID, example: 'mem_an' },
  id: { description: 'Id of the webhook', schema: OWN_ID, example: EXAMPLE_IDS.webhook },
  deliveryId: { description: 'Id of the delivery', schema: OWN_ID, example: EXAMPLE_IDS.delivery },
  eventId: { description: 'Id of the event', schema: OWN_ID, example: EXAMPLE_IDS.event },
  jobId: { description: 'Id of the retry job or replay', schema: OWN_ID, example: EXAMPLE_IDS.retryJob },
}

const SUBSCRIPTION = { description: 'Id of the push subscription', example: EXAMPLE_IDS.pushSubscription }
const API_KEY = { description: 'Id of the API key', example: EXAMPLE_IDS.apiKey }

/** Returns the parameters of the route's path. */
export function pathParametersOf({ path }: Pick<Route, 'path'>): object[] {
  return pathParameters(path).map((name) => ({
    name,
    in: 'path',
    required: true,
    ...(PARAMETERS[name] ?? { schema: OWN_ID, example: EXAMPLE_IDS.apiKey }),
    ...(name === 'id' && path.includes('/push-subscriptions/') ? SUBSCRIPTION : {}),
    ...(name === 'id' && path.includes('/api-keys/') ? API_KEY : {}),
  }))
}

/** Returns the names of the parameters in a path. */
function pathParameters(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name ?? '')
}
