import type { Readable } from 'node:stream'
import type { Static, TObject, TSchema } from 'typebox'
import type { Caller } from '../db/queries/api-keys.ts'
import type { IdempotentRequest } from '../db/queries/idempotency.ts'
import type { Session } from '../db/queries/sessions.ts'
import type { FieldError } from '../errors.ts'
import type { ApiDependencies } from './api.ts'
import type { SessionCookie } from './session-cookie.ts'

/** Where a request came from: the address of its sender, and the id under which the log has it. */
type Origin = { address: string; requestId: string }

/** A checked request, as a handler gets it. */
export type RouteRequest<Body = unknown, Query = unknown> = {
  caller: Caller
  params: Readonly<Record<string, string>>
  /** Query parameters in the types of the route's schema; undefined where it has none. */
  query: Query
  body: Body
  /** The body as it was sent. */
  bodyText: string
  origin: Origin
  /** Set when the route is idempotent and the request carried an `Idempotency-Key`. */
  idempotency: IdempotentRequest | null
  /** The session that it came with in the place of a key. */
  session: Session | null
  /** How its browser keeps a session; null where it must not have one. */
  cookie: SessionCookie | null
}

/** Who asks, and from where: what a command needs to know of its request. */
export type Actor = Pick<RouteRequest, 'caller' | 'origin'>

/** An answer: `body` becomes JSON; `json` is JSON text already, or its bytes; `stream` opens a `text/event-stream`. */
export type Reply = {
  status: number
  body?: unknown
  json?: string | Buffer
  stream?: () => Promise<Readable>
  headers?: Record<string, string>
}

/**
 * `open`: no key · `key`: any valid key, or a session of one unless `sessions` is false · `organisation`: a key of the
 * organisation in the path, whose member holds `permission` (null: none in particular), or a session of such a key; with
 * `ticket` no session, but a ticket in the query.
 */
type Access =
  | { kind: 'open' }
  | { kind: 'key'; sessions?: boolean }
  | { kind: 'organisation'; permission: string | null; ticket?: true }

/** What a schema cannot say of a body. Its fields may have any type here: the schema refuses wrong ones itself. */
type BodyRules = (fields: Readonly<Record<string, unknown>>, dependencies: ApiDependencies) => FieldError[]

type BodyOf<Schema extends TSchema> = { schema: Schema; maxBytes: number; rules?: BodyRules }

/** `problem`: the answer is a problem document; `stream`: it is a `text/event-stream`. */
type ResponseDocument = {
  description: string
  schema?: TSchema
  headers?: Record<string, string>
  problem?: boolean
  stream?: boolean
}

/** One route as data: it is routed, guarded, checked and documented from this value alone. */
export type Route = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Path with `:orgId`, `:id` … as `@koa/router` writes them. */
  path: string
  operationId: string
  summary: string
  description?: string
  access: Access
  /** The rate limit that its requests count against; `management` unless said otherwise, none for open routes. */
  limit?: 'publish'
  /** Its requests count against their address too, as those of open routes do. */
  countsAddress?: true
  /** Its query parameters, one property each; without it the query of the URL is not looked at. */
  query?: TObject
  /** Headers that count in the place of a query parameter, and before it. */
  fromHeaders?: Readonly<Record<string, string>>
  body?: BodyOf<TSchema>
  /** Honours `Idempotency-Key`. */
  idempotent?: boolean
  responses: Record<number, ResponseDocument>
  handle(dependencies: ApiDependencies, request: RouteRequest): Promise<Reply>
}

/** A route with a body: the handler sees the type that the schema states. */
export function routeWithBody<Schema extends TSchema>(
  route: Omit<Route, 'body' | 'handle'> & {
    body: BodyOf<Schema>
    handle(dependencies: ApiDependencies, request: RouteRequest<Static<Schema>>): Promise<Reply>
  },
): Route {
  // The body was checked against this very schema and its rules before the handler is called.
  return {
    ...route,
    handle: (dependencies, request) => route.handle(dependencies, request as RouteRequest<Static<Schema>>),
  }
}

/** A route with query parameters: the handler sees the types that the schema states. */
export function routeWithQuery<Schema extends TObject>(
  route: Omit<Route, 'query' | 'handle'> & {
    query: Schema
    handle(dependencies: ApiDependencies, request: RouteRequest<unknown, Static<Schema>>): Promise<Reply>
  },
): Route {
  // The parameters were checked against this very schema before the handler is called.
  return {
    ...route,
    handle: (dependencies, request) =>
      route.handle(dependencies, request as RouteRequest<unknown, Static<Schema>>),
  }
}

/** Parameter of the path, which the router has matched. */
export function param(request: Pick<RouteRequest, 'params'>, name: string): string {
  const value = request.params[name]
  if (value === undefined) throw new Error(`the path has no parameter ${name}`)
  return value
}
