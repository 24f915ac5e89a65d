import type { Readable } from 'node:stream'
import type { Static, TObject, TSchema } from 'typebox'
import type { Actor } from '../domain/actor.ts'
import type { OperatorScope } from '../domain/permissions.ts'
import { operatorInAudit, type Operator } from '../accounts/operator.ts'
import type { AuditActor } from '../db/queries/audit.ts'
import type { IdempotentRequest } from '../db/queries/idempotency.ts'
import type { Session } from '../db/queries/sessions.ts'
import type { ProblemCode } from '../domain/problems.ts'
import type { FieldError } from '../problem-error.ts'
import type { TraceContext } from '../observability/tracing.ts'
import type { ApiDependencies } from './api.ts'
import type { SessionCookie } from './auth/session-cookie.ts'

/** An authenticated and validated request, as a handler receives it. */
export type RouteRequest<Body = unknown, Query = unknown> = {
  /** Without a caller: one of no organisation, as `organisationId` is empty. */
  actor: Actor
  params: Readonly<Record<string, string>>
  /** Query parameters in the types of the route's schema; undefined where it has none. */
  query: Query
  body: Body
  /** The body as it was sent. */
  bodyText: string
  /** Set when the route is idempotent and the request has an `Idempotency-Key`. */
  idempotency: IdempotentRequest | null
  /** The trace that the request belongs to; null where the route reads none or the request has no valid `traceparent`. */
  trace: TraceContext | null
  /** The operator key's holder on operator routes, and where an operator may publish; else null. */
  operator: Operator | null
  /** The session that authenticated the request; null with a key or a ticket. */
  session: Session | null
  /** The cookie for a session on this connection; null where a session is not allowed. */
  cookie: SessionCookie | null
  /** The hash of the session token that came with the request, valid or not, whatever authenticated it. */
  sentSession(): Buffer | null
  /** The client prefers NDJSON, and the route has it. */
  wantsNdjson: boolean
  /** The URL of this service as the client reaches it: the configured one, else of the requested host. */
  baseUrl(): string
}

/** An answer: `body` becomes JSON; `json` is JSON text already, or its bytes; `stream` opens a `text/event-stream`. */
export type Reply = {
  status: number
  body?: unknown
  json?: string | Buffer
  stream?: () => Promise<Readable>
  /** Text that comes bit by bit, in place of a body. */
  text?: { type: string; stream: Readable }
  headers?: Record<string, string>
  /** The body shows a secret: it is not compressed. No answer of the API is stored. */
  isSecret?: true
  /** For the log line of the request. */
  trace?: LoggedTrace | null
}

/** The trace of the event that a request concerns. */
export type LoggedTrace = { traceId: string; spanId: string | null }

/**
 * `open`: no key; where the process `recognises` callers, a valid key or session makes one, and anything else none · `key`: any valid key, or a session of one unless `sessions` is false · `organisation`: a key of the
 * organisation in the path whose member has `permission` (null: none required), or a session of such a key; with
 * `ticket` no session, but a ticket in the query; with `operatorScope` also an operator key of this scope, for every
 * organisation · `operator`: an operator key of this scope, in `x-operator-key`; without configured keys the route does
 * not exist.
 */
type Access =
  | { kind: 'open'; recognises?: (dependencies: ApiDependencies) => boolean }
  | { kind: 'key'; sessions?: boolean }
  | { kind: 'organisation'; permission: string | null; ticket?: true; operatorScope?: OperatorScope }
  | { kind: 'operator'; scope: OperatorScope; sessions?: true }

/**
 * Checks rules of a body that a schema cannot express. Fields may have any type: the schema refuses wrong ones itself.
 */
type BodyRules = (
  fields: Readonly<Record<string, unknown>>,
  dependencies: ApiDependencies,
  request: Pick<RouteRequest, 'actor' | 'params'>,
) => FieldError[] | Promise<FieldError[]>

/**
 * `example`: shown in the OpenAPI document instead of one that is made of the examples in the schema. `optional`: a
 * request without a body has `{}`.
 */
type BodyOf<Schema extends TSchema> = {
  schema: Schema
  optional?: true
  maxBytes: number
  rules?: BodyRules
  example?: unknown
}

/**
 * `problem`: the answer is a problem document, with one of these codes, or any of the status; `stream`: it is a
 * `text/event-stream`; `ndjson`: a line of the answer as `application/x-ndjson`, which a client may prefer; `links`: the parameters of other operations that it holds, as runtime expressions of OpenAPI.
 */
type ResponseDocument = {
  description: string
  schema?: TSchema
  example?: unknown
  headers?: Record<string, string>
  problem?: true | readonly ProblemCode[]
  stream?: boolean
  ndjson?: TSchema
  links?: Links
}

/** Parameters by the id of the operation that takes them: `{ getWebhook: { id: '$response.body#/id' } }`. */
export type Links = Readonly<Record<string, Readonly<Record<string, string>>>>

/** One route as data: routing, authentication, validation and documentation follow from this value alone. */
export type Route = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path with `:orgId`, `:id` … as `@koa/router` writes them. */
  path: string
  operationId: string
  summary: string
  description?: string
  /** The group of the route in the OpenAPI document. */
  tag?: string
  access: Access
  /** The rate limit that requests count against: `management` by default, none for open routes. */
  limit?: 'publish'
  /** Whether requests count against their address too: by default those of open routes do. */
  countsAddress?: boolean
  /** Only pages of this very origin may send it, with a session or without one. */
  sameOrigin?: true
  /** A read that the audit trail records: with a session only pages of this very origin may send it. */
  audited?: true
  /** Query parameters, one property each. Without it routes of the API refuse every parameter, others ignore them. */
  query?: TObject
  /** Headers that override a query parameter, by the header's name. */
  fromHeaders?: Readonly<Record<string, string>>
  body?: BodyOf<TSchema>
  /** Honours `Idempotency-Key`. */
  idempotent?: boolean
  /** Reads `traceparent` (W3C Trace Context). */
  traced?: boolean
  responses: Record<number, ResponseDocument>
  handle(dependencies: ApiDependencies, request: RouteRequest): Promise<Reply>
}

/** Types the handler's body and query parameters by the route's schemas, against which the router has validated them. */
export function typedRoute<Body extends TSchema, Query extends TObject>(
  route: Omit<Route, 'body' | 'query' | 'handle'> & {
    body?: BodyOf<Body>
    query?: Query
    handle(dependencies: ApiDependencies, request: RouteRequest<Static<Body>, Static<Query>>): Promise<Reply>
  },
): Route {
  return route
}

/** Returns the operator of a request to an operator route. */
export function operatorOf({ operator }: Pick<RouteRequest, 'operator'>): Operator {
  if (operator === null) throw new Error('the route is not one for operators')
  return operator
}

/** Returns the same as the audit trail of the organisation in the path names it. */
export function operatorActor(request: Pick<RouteRequest, 'operator' | 'params'>): AuditActor {
  return operatorInAudit(operatorOf(request), param(request, 'orgId'))
}

/** Returns a parameter of the matched path. */
export function param(request: Pick<RouteRequest, 'params'>, name: string): string {
  const value = request.params[name]
  if (value === undefined) throw new Error(`the path has no parameter ${name}`)
  return value
}
