import type { TSchema } from 'typebox'
import packageJson from '../../package.json' with { type: 'json' }
import type { Catalogue } from '../catalogue/catalogue.ts'
import { PROBLEMS, type ProblemCode } from '../domain/problems.ts'
import { createComponents, type Components } from './openapi/components.ts'
import {
  linksOf,
  commonRefusals,
  HEADERS,
  problemContent,
  rateLimitHeaders,
  refusalComponents,
  pathParametersOf,
} from './openapi/responses.ts'
import {
  RECEIVED,
  RECEIVED_PARAMETERS,
  RECEIVED_RESPONSES,
  namedEvents,
  receivedEvents,
  receivedSchemas,
} from './openapi/received-events.ts'
import { refinementsOf } from './openapi/refinements.ts'
import type { Route } from './route.ts'
import { ProblemSchema } from './schemas/common.ts'
import { IDEMPOTENCY_KEY_PATTERN } from './validation/check-request.ts'

const STREAM_CONTENT = { 'text/event-stream': { schema: { type: 'string' } } }

/** The tag of a route that names none. */
const OTHER = 'Service'

/** W3C Trace Context. Any string is taken, since a malformed header is no reason to refuse an event. */
const TRACEPARENT = {
  name: 'traceparent',
  in: 'header',
  required: false,
  description:
    'W3C Trace Context: the trace of the action that caused the event, where the body gives none. A malformed header is ignored.',
  schema: { type: 'string' },
  example: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
}

/** Returns the OpenAPI 3.1 document of the routes, and of the events of the catalogue that endpoints receive. */
export function openApiDocument(
  routes: readonly Route[],
  { eventKeys }: Pick<Catalogue, 'eventKeys'>,
): object {
  const events = namedEvents(eventKeys)
  const components = createComponents(refinementsOf(eventKeys, events))
  components.lift(ProblemSchema)
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, routes, components) }
  }
  const received = receivedSchemas(events, components)
  const tags = [...new Set([...routes.map(({ tag = OTHER }) => tag), RECEIVED])]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Posthorn',
      version: packageJson.version,
      description: 'Self-hosted webhook delivery. Errors are problem+json (RFC 9457) with a stable `code`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: tags.map((name) => ({ name })),
    paths,
    webhooks: receivedEvents(events),
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        operatorKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-operator-key',
          description:
            "Of the platform's own backend, from `POSTHORN_OPERATOR_KEYS`; without keys there is no operator API",
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-posthorn_session',
          description:
            'Of a browser that signed in; what changes something is taken from pages of this site only. Where other pages may embed the developer area: `__Host-posthorn_framed_session`',
        },
        operatorSession: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-posthorn_operator_session',
          description: "Of a browser that signed in with an operator key, for the operator's pages",
        },
        ticket: { type: 'apiKey', in: 'query', name: 'ticket' },
      },
      headers: HEADERS,
      parameters: RECEIVED_PARAMETERS,
      responses: { ...refusalComponents(), ...RECEIVED_RESPONSES },
      schemas: { ...components.schemas(), ...received },
    },
  }
}

function operation(route: Route, routes: readonly Route[], components: Components): object {
  const { operationId, summary, access, body, tag = OTHER } = route
  const scope = access.kind === 'operator' ? `Scope: \`${access.scope}\`.` : ''
  const permission =
    access.kind === 'organisation' && access.permission !== null
      ? `Permission: \`${access.permission}\`.`
      : ''
  const description = [route.description, permission, scope].filter(Boolean).join(' ')
  return {
    operationId,
    summary,
    tags: [tag],
    ...(description === '' ? {} : { description }),
    security: securityOf(access),
    ...parameters(route, components),
    ...(body === undefined
      ? {}
      : { requestBody: { required: body.optional !== true, content: jsonContent(body, components) } }),
    // A route's own descriptions override those of its kind.
    responses: { ...commonRefusals(route), ...stated(route, routes, components) },
  }
}

function securityOf(access: Route['access']): object[] {
  if (access.kind === 'open') return []
  if (access.kind === 'operator')
    return [{ operatorKey: [] }, ...(access.sessions === true ? [{ operatorSession: [] }] : [])]
  const byTicket = access.kind === 'organisation' && access.ticket === true
  const bySession = access.kind === 'organisation' ? !byTicket : access.sessions !== false
  const byOperator = access.kind === 'organisation' && access.operatorScope !== undefined
  return [
    { apiKey: [] },
    ...(byOperator ? [{ operatorKey: [] }] : []),
    ...(bySession ? [{ session: [] }] : []),
    ...(byTicket ? [{ ticket: [] }] : []),
  ]
}

function parameters(route: Route, components: Components): object {
  const idempotencyKey = {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'A key of your choice for this one request, such as `3f2a61b0-order-1042-paid`. A repeat with the same key, path and body within 24 hours gets the same answer and does nothing again; the same key with another body gets 422 `idempotency_key_reused`. A dry run, which does nothing, ignores it.',
    // No `example`: tools would send it with each body that they try.
    schema: { type: 'string', pattern: IDEMPOTENCY_KEY_PATTERN },
  }
  const all = [
    ...pathParametersOf(route),
    ...inQuery(route, components),
    ...inHeaders(route, components),
    ...(route.idempotent === true ? [idempotencyKey] : []),
    ...(route.traced === true ? [TRACEPARENT] : []),
  ]
  return all.length === 0 ? {} : { parameters: all }
}

function inQuery({ query }: Route, { lift }: Components): object[] {
  if (query === undefined) return []
  const required = new Set(query.required)
  return Object.entries(query.properties).map(([name, schema]) => ({
    name,
    in: 'query',
    // A parameter with a default may be left out; the handler sees the default.
    required: required.has(name) && !('default' in schema),
    schema: lift(schema),
  }))
}

function inHeaders({ query, fromHeaders = {} }: Route, { lift }: Components): object[] {
  return Object.entries(fromHeaders).map(([header, parameter]) => ({
    name: header,
    in: 'header',
    required: false,
    description: `Counts before \`${parameter}\`; \`EventSource\` sends it by itself`,
    schema: lift(query?.properties[parameter] ?? {}),
  }))
}

function stated(route: Route, routes: readonly Route[], components: Components): Record<string, object> {
  const common = route.access.kind === 'open' ? {} : rateLimitHeaders()
  const documented = Object.entries(route.responses).map(([status, response]) => {
    const { description, schema, headers = {}, problem = false, stream = false, ndjson, links } = response
    const described: Record<string, object> = { ...common }
    for (const [name, text] of Object.entries(headers))
      described[name] = { description: text, schema: { type: 'string' } }
    return [
      status,
      {
        description,
        ...(Object.keys(described).length === 0 ? {} : { headers: described }),
        ...(schema === undefined
          ? {}
          : {
              content: {
                ...jsonContent({ ...response, schema }, components),
                ...ndjsonContent(ndjson, components),
              },
            }),
        ...(problem === false ? {} : { content: problemContent(codesOf(problem, Number(status))) }),
        ...(stream ? { content: STREAM_CONTENT } : {}),
        ...(links === undefined ? {} : { links: linksOf(route, links, routes) }),
      },
    ]
  })
  return Object.fromEntries(documented) as Record<string, object>
}

/** A JSON body with an example: the one that is given, or one made of those of its schema. */
function jsonContent({ schema, example }: { schema: TSchema; example?: unknown }, components: Components) {
  return {
    'application/json': {
      schema: components.lift(schema),
      example: example ?? components.exampleOf(schema),
    },
  }
}

/** A line of the rows, each of which is a JSON text of its own. */
function ndjsonContent(line: TSchema | undefined, components: Components): object {
  return line === undefined
    ? {}
    : { 'application/x-ndjson': { schema: components.lift(line), example: components.exampleOf(line) } }
}

/** The codes of a refusal: those that the route names, or all of the status. */
function codesOf(problem: true | readonly ProblemCode[], status: number): readonly ProblemCode[] {
  if (problem !== true) return problem
  const codes = Object.keys(PROBLEMS) as ProblemCode[]
  return codes.filter((code) => PROBLEMS[code].status === status)
}
