import packageJson from '../../package.json' with { type: 'json' }
import type { Route } from './route.ts'
import { ProblemSchema } from './schemas/common.ts'

const PROBLEM_CONTENT = {
  'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
}

const STREAM_CONTENT = { 'text/event-stream': { schema: { type: 'string' } } }

/** draft-ietf-httpapi-ratelimit-headers-11; they come with every answer to a valid key, refusals included. */
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

const TOO_MANY = {
  description: 'Too many requests with this key, or too many without a valid key from this address',
  headers: referenceTo({ ...RATE_LIMIT_HEADERS, ...RETRY_AFTER }),
  content: PROBLEM_CONTENT,
}

/** The OpenAPI 3.1 document, made from the routes themselves. */
export function openApiDocument(routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Posthorn',
      version: packageJson.version,
      description: 'Self-hosted webhook delivery. Errors are problem+json (RFC 9457) with a stable `code`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-posthorn_session',
          description:
            'Of a browser that signed in; what changes something is taken from pages of this site only',
        },
        ticket: { type: 'apiKey', in: 'query', name: 'ticket' },
      },
      headers: { ...RATE_LIMIT_HEADERS, ...RETRY_AFTER },
      schemas: { Problem: ProblemSchema },
    },
  }
}

function operation(route: Route): object {
  const { operationId, summary, access } = route
  const permission =
    access.kind === 'organisation' && access.permission !== null
      ? `Permission: \`${access.permission}\`.`
      : ''
  const description = [route.description, permission].filter(Boolean).join(' ')
  return {
    operationId,
    summary,
    ...(description === '' ? {} : { description }),
    security: securityOf(access),
    ...parameters(route),
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: route.body.schema } } } }),
    // What a route says itself counts: it knows more than what holds for all of its kind.
    responses: { ...problems(route), ...stated(route) },
  }
}

function securityOf(access: Route['access']): object[] {
  if (access.kind === 'open') return []
  const byTicket = access.kind === 'organisation' && access.ticket === true
  const bySession = access.kind === 'organisation' ? !byTicket : access.sessions !== false
  return [{ apiKey: [] }, ...(bySession ? [{ session: [] }] : []), ...(byTicket ? [{ ticket: [] }] : [])]
}

function parameters(route: Route): object {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const idempotencyKey = {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'A repeat with the same key and body within 24 hours gets the same answer and does nothing again.',
    schema: { type: 'string', pattern: '^"?[A-Za-z0-9._:-]{1,255}"?$' },
  }
  const all = [
    ...inPath,
    ...inQuery(route),
    ...inHeaders(route),
    ...(route.idempotent === true ? [idempotencyKey] : []),
  ]
  return all.length === 0 ? {} : { parameters: all }
}

function inQuery({ query }: Route): object[] {
  if (query === undefined) return []
  const required = new Set(query.required)
  return Object.entries(query.properties).map(([name, schema]) => ({
    name,
    in: 'query',
    // A parameter with a default may be left out; the handler sees the default.
    required: required.has(name) && !('default' in schema),
    schema,
  }))
}

function inHeaders({ query, fromHeaders = {} }: Route): object[] {
  return Object.entries(fromHeaders).map(([header, parameter]) => ({
    name: header,
    in: 'header',
    required: false,
    description: `Counts before \`${parameter}\`; \`EventSource\` sends it by itself`,
    schema: query?.properties[parameter] ?? {},
  }))
}

function stated({ access, responses }: Route): Record<string, object> {
  const common = access.kind === 'open' ? {} : referenceTo(RATE_LIMIT_HEADERS)
  const documented = Object.entries(responses).map(([status, response]) => {
    const { description, schema, headers = {}, problem = false, stream = false } = response
    const described: Record<string, object> = { ...common }
    for (const [name, text] of Object.entries(headers))
      described[name] = { description: text, schema: { type: 'string' } }
    return [
      status,
      {
        description,
        ...(Object.keys(described).length === 0 ? {} : { headers: described }),
        ...(schema === undefined ? {} : { content: { 'application/json': { schema } } }),
        ...(problem ? { content: PROBLEM_CONTENT } : {}),
        ...(stream ? { content: STREAM_CONTENT } : {}),
      },
    ]
  })
  return Object.fromEntries(documented) as Record<string, object>
}

/** The refusals that every route of its kind can give. */
function problems(route: Route): Record<string, object> {
  const statuses: [number, string][] = []
  if (route.body !== undefined) statuses.push([400, 'The body cannot be read'])
  if (route.query !== undefined) statuses.push([400, 'The cursor cannot be read'])
  if (route.access.kind !== 'open') statuses.push([401, 'No valid API key'])
  if (route.access.kind === 'organisation') {
    statuses.push([403, 'Permission missing'], [404, 'No such organisation or resource'])
  }
  if (route.body !== undefined) {
    statuses.push([413, 'Body too large'], [415, 'Not JSON in UTF-8'], [422, 'Fields are not valid'])
  }
  if (route.query !== undefined) statuses.push([422, 'Parameters are not valid'])
  if (route.access.kind !== 'open') statuses.push([503, 'The database cannot be reached; see Retry-After'])
  const refusals = statuses.map(([status, description]): [string, object] => [
    String(status),
    { description, content: PROBLEM_CONTENT },
  ])
  return Object.fromEntries(route.access.kind === 'open' ? refusals : [...refusals, ['429', TOO_MANY]])
}

function referenceTo(headers: object): Record<string, object> {
  return Object.fromEntries(
    Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  )
}
