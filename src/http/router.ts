import Router, { type RouterContext } from '@koa/router'
import type { Middleware } from 'koa'
import { methodNotAllowed, notFound } from '../errors.ts'
import { admit } from './admit.ts'
import { answer } from './answer.ts'
import type { ApiDependencies } from './api.ts'
import { bodyCheck } from './check-body.ts'
import { queryCheck } from './check-query.ts'
import { requireOrganisation, requirePermissions } from './guard.ts'
import { parseIdempotencyKey } from './idempotency-key.ts'
import { isUuid } from './ids.ts'
import { readJsonBody } from './read-body.ts'
import type { RequestState } from './middleware/request-metrics.ts'
import type { Route, RouteRequest } from './route.ts'
import { sessionCookieFor } from './session-cookie.ts'

/**
 * Turns the routes into middleware: match → authenticate → count → own organisation → permission → query → body →
 * handle. What no route takes goes to `others`.
 */
export function createRouter(
  dependencies: ApiDependencies,
  routes: readonly Route[],
  others: readonly Middleware[],
): Middleware[] {
  const router = new Router({ sensitive: true, strict: true })
  for (const route of routes) router.register(route.path, [route.method], serve(dependencies, route))
  // The router adds its own fields to the context; to Koa it is middleware like any other.
  return [router.routes() as unknown as Middleware, countAddress(dependencies), ...others, unmatched(routes)]
}

/** Counts what no route takes: pages, their files, and unknown paths. */
function countAddress({ rateLimits }: ApiDependencies): Middleware {
  return async (ctx, next) => {
    await rateLimits.open?.count(ctx.ip)
    await next()
  }
}

function serve(dependencies: ApiDependencies, route: Route) {
  const readQuery = route.query === undefined ? () => undefined : queryCheck(route.query)
  const check = route.body === undefined ? null : bodyCheck(route.body)
  return async (ctx: RouterContext<RequestState>): Promise<void> => {
    ctx.state.operationId = route.operationId
    const request = await checkedRequest(dependencies, route, ctx, readQuery)
    check?.(request.body, dependencies)
    await answer(ctx, await route.handle(dependencies, request))
  }
}

async function checkedRequest(
  dependencies: ApiDependencies,
  route: Route,
  ctx: RouterContext,
  readQuery: (text: string) => unknown,
): Promise<RouteRequest> {
  const params: Record<string, string> = ctx.params
  const origin = { address: ctx.ip, requestId: ctx.response.get('x-request-id') }
  const cookie = sessionCookieFor(ctx, dependencies.publicUrl)
  const { access } = route
  if (access.kind === 'open' || route.countsAddress === true)
    await dependencies.rateLimits.open?.count(ctx.ip)
  const { caller, session } = access.kind === 'open' ? OPEN : await admit(dependencies, route, ctx, cookie)
  if (access.kind === 'organisation') {
    requireOrganisation(caller, params['orgId'])
    if (access.permission !== null) requirePermissions(caller, [access.permission])
  }
  if (access.kind !== 'open') requireIds(params)
  const query = readQuery(queryOf(route, ctx))
  const { text, value } = route.body === undefined ? NO_BODY : await readJsonBody(ctx, route.body.maxBytes)
  const operation = `${route.method} ${route.path}`
  const idempotency =
    route.idempotent === true
      ? parseIdempotencyKey(ctx.headers['idempotency-key'], caller, operation, text)
      : null
  return { caller, session, params, origin, cookie, query, body: value, bodyText: text, idempotency }
}

/** 404 unless all that the path names, but for the organisation, could be an id. */
function requireIds(params: Readonly<Record<string, string>>): void {
  const ids = Object.entries(params).filter(([name]) => name !== 'orgId')
  if (!ids.every(([, id]) => isUuid(id))) throw notFound('resource')
}

const NO_BODY = { text: '', value: undefined }

/** Stands where an open route has no caller; it may do nothing. */
const NOBODY = {
  organisationId: '',
  memberId: '',
  apiKeyId: '',
  keyHash: Buffer.alloc(0),
  fullAccess: false,
  permissions: [],
}
const OPEN = { caller: NOBODY, session: null }

/** The query as it was sent, with what headers say in the place of its parameters. */
function queryOf({ fromHeaders = {} }: Route, ctx: RouterContext): string {
  const sent = Object.entries(fromHeaders).filter(([header]) => ctx.get(header) !== '')
  if (sent.length === 0) return ctx.querystring
  const parameters = new URLSearchParams(ctx.querystring)
  for (const [header, name] of sent) parameters.set(name, ctx.get(header))
  return parameters.toString()
}

/** What no route took: 405 with `Allow` where the path exists, else 404. */
function unmatched(routes: readonly Route[]): Middleware {
  const layers = new Router({ sensitive: true, strict: true })
  for (const route of routes) layers.register(route.path, [route.method], () => undefined)
  return (ctx) => {
    const allowed = new Set(layers.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods))
    if (allowed.size === 0) throw notFound('route')
    throw methodNotAllowed([...allowed])
  }
}
