import { METHODS } from 'node:http'
import Router, { type RouterContext } from '@koa/router'
import type { Middleware } from 'koa'
import type { Caller } from '../domain/actor.ts'
import { callerOfOperator } from '../accounts/operator.ts'
import { hashCredential } from '../credentials.ts'
import {
  invalidFields,
  methodNotAllowed,
  notFound,
  ProblemError,
  requirePermissions,
} from '../problem-error.ts'
import type { TraceContext } from '../observability/tracing.ts'
import { isPlatformId, parseUuid } from '../ids.ts'
import type { ApiDependencies } from './api.ts'
import { authenticate, recognise, type Authenticated } from './auth/authenticate.ts'
import {
  operatorCookieFor,
  readSessionToken,
  requireSameOrigin,
  sessionCookieFor,
} from './auth/session-cookie.ts'
import { requireOwnHost } from './middleware/requested-host.ts'
import { wantsNdjson } from './list-route.ts'
import { answer, type RequestState } from './answer.ts'
import type { Route, RouteRequest } from './route.ts'
import { bodyCheck, parseIdempotencyKey, parseTraceparent, queryCheck } from './validation/check-request.ts'
import { hasBody, readJsonBody } from './validation/read-body.ts'

/** Every method that Node parses, so that a path answers those that it does not take. */
const ALL_METHODS = [...METHODS]

/**
 * Builds the middleware of the routes: match → authenticate → count → own organisation → permission → query → body →
 * handle. Requests that match no route go to `others`.
 */
export function createRouter(
  dependencies: ApiDependencies,
  routes: readonly Route[],
  others: readonly Middleware[],
): Middleware[] {
  const router = new Router({ sensitive: true, strict: true })
  const served = routes.filter(
    ({ access }) => access.kind !== 'operator' || dependencies.operatorKeys.isConfigured,
  )
  // Every method, before any path that matches too, but is less specific: what a path does not answer, no other answers
  // for it.
  for (const [path, ofPath] of byPath(served))
    router.register(path, ALL_METHODS, serveMethods(dependencies, ofPath))
  // The router adds its own fields to the context; to Koa it is middleware like any other.
  return [router.routes() as unknown as Middleware, countAddress(dependencies), ...others, unmatched]
}

/** Groups the routes by their paths, in the order in which paths are matched: fixed segments come before parameters. */
function byPath(routes: readonly Route[]): [path: string, ofPath: Route[]][] {
  const paths = [...new Set(routes.map(({ path }) => path))]
  return paths
    .sort((a, b) => (specificity(a) < specificity(b) ? -1 : 1))
    .map((path) => [path, routes.filter((route) => route.path === path)])
}

/** A text that sorts before that of every less specific path: no segment of a path begins with `~`. */
function specificity(path: string): string {
  return path.replaceAll(/\/:\w+/g, '/~')
}

/** Serves the routes of one path. Throws 405 with its methods for any other. */
function serveMethods(dependencies: ApiDependencies, ofPath: readonly Route[]): ServeRoute {
  const byMethod = new Map<string, ServeRoute>(
    ofPath.map((route) => [route.method, serve(dependencies, route)]),
  )
  const allowed = byMethod.has('GET') ? ['HEAD', ...byMethod.keys()] : [...byMethod.keys()]
  return async (ctx) => {
    const serveRoute = byMethod.get(ctx.method === 'HEAD' ? 'GET' : ctx.method)
    if (serveRoute !== undefined) return serveRoute(ctx)
    await dependencies.rateLimits.open?.count(ctx.ip)
    throw methodNotAllowed(allowed)
  }
}

/** Counts requests that match no route: pages, their files, and unknown paths. */
function countAddress({ rateLimits }: ApiDependencies): Middleware {
  return async (ctx, next) => {
    await rateLimits.open?.count(ctx.ip)
    await next()
  }
}

type ServeRoute = (ctx: RouterContext<RequestState>) => Promise<void>

function serve(dependencies: ApiDependencies, route: Route): ServeRoute {
  const readQuery = route.query === undefined ? () => undefined : queryCheck(route.query)
  const checkBody = route.body === undefined ? null : bodyCheck(route.body)
  return async (ctx) => {
    ctx.state.operationId = route.operationId
    const request = await readRequest(dependencies, route, ctx, readQuery)
    await checkBody?.(request, dependencies)
    await answer(ctx, await route.handle(dependencies, request), dependencies.logger)
  }
}

async function readRequest(
  dependencies: ApiDependencies,
  route: Route,
  ctx: RouterContext<RequestState>,
  readQuery: (text: string) => unknown,
): Promise<RouteRequest> {
  const given: Record<string, string> = ctx.params
  const { access } = route
  const cookie = (access.kind === 'operator' ? operatorCookieFor : sessionCookieFor)(ctx, dependencies)
  if (route.countsAddress ?? access.kind === 'open') await dependencies.rateLimits.open?.count(ctx.ip)
  const find = access.kind === 'open' ? recognise : authenticate
  const found = await admit(dependencies, route, ctx, await find(dependencies, route, ctx, cookie))
  if (route.sameOrigin === true) {
    requireOwnHost(ctx, dependencies.publicUrl)
    requireSameOrigin(ctx)
  }
  const params = access.kind === 'open' ? given : parseIds(given, route.method)
  const trace = route.traced === true ? readTrace(dependencies, ctx) : null
  const query = readQuery(queryOf(route, ctx))
  const isBodyToCome = route.body !== undefined && !ctx.req.complete
  const { text: bodyText, value: body } = await bodyOf(route, ctx, found.caller.organisationId)
  // The rights of the caller may have ended while the body was being sent.
  const { caller, session, operator } =
    isBodyToCome && access.kind !== 'open'
      ? await admit(dependencies, route, ctx, await authenticate(dependencies, route, ctx, cookie, false))
      : found
  const sender = { address: ctx.ip, requestId: ctx.response.get('x-request-id') }
  const idempotencyKey = ctx.headers['idempotency-key']
  const idempotency =
    route.idempotent === true && idempotencyKey !== undefined
      ? parseIdempotencyKey(idempotencyKey, caller, operationOf(route, params), bodyText)
      : null
  const baseUrl = (): string => dependencies.publicUrl || `${ctx.protocol}://${ctx.host}`
  const sentSession = (): Buffer | null => {
    const token = readSessionToken(ctx, cookie)
    return token === null ? null : hashCredential(token)
  }
  return {
    actor: { ...caller, ...sender },
    operator: operator === null ? null : { ...operator, ...sender },
    session,
    params,
    cookie,
    sentSession,
    wantsNdjson: wantsNdjson(route, ctx),
    baseUrl,
    query,
    body,
    bodyText,
    idempotency,
    trace,
  }
}

/** Returns who may do what the route does, an operator with the caller as which it acts. Throws 404 or 403 else. */
async function admit(
  dependencies: ApiDependencies,
  { access }: Route,
  ctx: RouterContext<RequestState>,
  authenticated: Authenticated,
): Promise<Authenticated> {
  const { operator } = authenticated
  const organisationId = ctx.params['orgId']
  const caller =
    operator !== null && access.kind === 'organisation'
      ? await operatorIn(dependencies, organisationId)
      : authenticated.caller
  if (operator !== null) ctx.state.operator = operator.name
  if (access.kind === 'organisation') {
    requireOwnOrganisation(caller, organisationId)
    // An operator is admitted by the scope of its key.
    if (access.permission !== null && operator === null) requirePermissions(caller, [access.permission])
  }
  return { ...authenticated, caller }
}

/** Returns what an idempotency key is for: a route, of the webhook or the like that the path names. */
function operationOf({ method, path }: Route, params: Readonly<Record<string, string>>): string {
  const named = path.replaceAll(/:(\w+)/g, (whole, name: string) =>
    name === 'orgId' ? whole : (params[name] ?? whole),
  )
  return `${method} ${named}`
}

/** Returns the trace that the request belongs to, also for its log line. A malformed header is counted and ignored. */
function readTrace({ metrics }: ApiDependencies, ctx: RouterContext<RequestState>): TraceContext | null {
  const header = ctx.headers['traceparent']
  if (header === undefined) return null
  const trace = parseTraceparent(String(header))
  if (trace === null) metrics.traceparentIgnored()
  else ctx.state.trace = trace
  return trace
}

/** Returns the caller as which an operator acts in the organisation. Throws 404 when there is none. */
async function operatorIn({ requireOrganisation }: ApiDependencies, organisationId = ''): Promise<Caller> {
  if (!isPlatformId(organisationId)) throw notFound('organisation')
  await requireOrganisation(organisationId)
  return callerOfOperator(organisationId)
}

/** Throws 404 for every organisation but the caller's own, whether it exists or not. */
function requireOwnOrganisation(caller: Caller, organisationId: string | undefined): void {
  if (caller.organisationId !== organisationId) throw notFound('organisation')
}

/**
 * Returns the parameters of the path, ids of ours in lower case. Throws 404 unless each has the form of an id: of the
 * platform's own for organisations and members, else of ours. Throws 422 where PUT would create what has the id.
 */
function parseIds(given: Readonly<Record<string, string>>, method: Route['method']): Record<string, string> {
  const parsed = Object.entries(given).map(([name, text]) => [name, parseId(name, text)] as const)
  const wrong = parsed.filter(([, id]) => id === null)
  if (wrong.length === 0) return Object.fromEntries(parsed) as Record<string, string>
  if (method !== 'PUT') throw notFound('resource')
  throw invalidFields(
    wrong.map(([name]) => ({
      pointer: `/${name}`,
      code: 'wrong_format',
      detail: 'must be 1 to 64 of A-Z a-z 0-9 _ -',
    })),
  )
}

function parseId(name: string, text: string): string | null {
  if (PLATFORM_IDS.has(name)) return isPlatformId(text) ? text : null
  return parseUuid(text)
}

/** Parameters with ids that the platform gives. */
const PLATFORM_IDS: ReadonlySet<string> = new Set(['orgId', 'memberId'])

const NO_BODY = { text: '', value: undefined }

/** Reads the body that the route takes. */
async function bodyOf(
  { body }: Route,
  ctx: RouterContext,
  organisationId: string,
): Promise<{ text: string; value: unknown }> {
  if (body === undefined) return NO_BODY
  if (body.optional === true && !hasBody(ctx)) return { text: '', value: {} }
  return readJsonBody(ctx, { maxBytes: body.maxBytes, organisationId })
}

/** Returns the query as it was sent, with parameters replaced by the headers that override them. */
function queryOf({ fromHeaders = {} }: Route, ctx: RouterContext): string {
  const sent = Object.entries(fromHeaders).filter(([header]) => ctx.get(header) !== '')
  if (sent.length === 0) return ctx.querystring
  const parameters = new URLSearchParams(ctx.querystring)
  for (const [header, name] of sent) parameters.set(name, ctx.get(header))
  return parameters.toString()
}

function unmatched(): never {
  throw new ProblemError('not_found', {
    detail: 'No such path. The API begins at /api/orgs/:orgId; /docs describes it.',
  })
}
