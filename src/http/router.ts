import Router, { type RouterContext } from '@koa/router'
import type { Middleware } from 'koa'
import { notFound, ProblemError } from '../errors.ts'
import { admit } from './admit.ts'
import type { ApiDependencies } from './api.ts'
import { bodyCheck } from './check-body.ts'
import { queryCheck } from './check-query.ts'
import { requireOrganisation, requirePermissions } from './guard.ts'
import { parseIdempotencyKey } from './idempotency-key.ts'
import { isUuid } from './ids.ts'
import { readJsonBody } from './read-body.ts'
import type { RequestState } from './middleware/request-metrics.ts'
import type { Reply, Route, RouteRequest } from './route.ts'
import { sessionCookieFor } from './session-cookie.ts'

/**
 * Turns the routes into middleware: match → authenticate → count → own organisation → permission → query → body →
 * handle.
 */
export function createRouter(dependencies: ApiDependencies, routes: readonly Route[]): Middleware[] {
  const router = new Router({ sensitive: true, strict: true })
  for (const route of routes) router.register(route.path, [route.method], serve(dependencies, route))
  // The router adds its own fields to the context; to Koa it is middleware like any other.
  return [router.routes() as unknown as Middleware, unmatched(routes)]
}

function serve(dependencies: ApiDependencies, route: Route) {
  const readQuery = route.query === undefined ? () => undefined : queryCheck(route.query)
  const check = route.body === undefined ? null : bodyCheck(route.body)
  return async (ctx: RouterContext<RequestState>): Promise<void> => {
    ctx.state.operationId = route.operationId
    const request = await checkedRequest(dependencies, route, ctx, readQuery)
    check?.(request.body, dependencies)
    answer(ctx, await route.handle(dependencies, request))
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
  const bare = { params, origin, cookie, session: null, body: undefined, bodyText: '', idempotency: null }
  if (route.access.kind === 'open') return { ...bare, caller: NOBODY, query: readQuery(ctx.querystring) }

  const { caller, session } = await admit(dependencies, route, ctx, cookie)
  if (route.access.kind === 'organisation') {
    requireOrganisation(caller, params['orgId'])
    const { permission } = route.access
    if (permission !== null) requirePermissions(caller, [permission])
  }
  const ids = Object.entries(params).filter(([name]) => name !== 'orgId')
  if (!ids.every(([, id]) => isUuid(id))) throw notFound('resource')
  const query = readQuery(ctx.querystring)
  if (route.body === undefined) return { ...bare, caller, session, query }

  const { text, value } = await readJsonBody(ctx, route.body.maxBytes)
  const operation = `${route.method} ${route.path}`
  const idempotency =
    route.idempotent === true
      ? parseIdempotencyKey(ctx.headers['idempotency-key'], caller, operation, text)
      : null
  return { ...bare, caller, session, query, body: value, bodyText: text, idempotency }
}

/** Stands where an open route has no caller; it may do nothing. */
const NOBODY = { organisationId: '', memberId: '', apiKeyId: '', fullAccess: false, permissions: [] }

function answer(ctx: RouterContext, reply: Reply): void {
  ctx.status = reply.status
  ctx.set(reply.headers ?? {})
  if (reply.status === 204) {
    ctx.body = null
    return
  }
  ctx.body = reply.json ?? JSON.stringify(reply.body)
  ctx.type = 'application/json'
}

/** What no route took: 405 with `Allow` where the path exists, else 404. */
function unmatched(routes: readonly Route[]): Middleware {
  const layers = new Router({ sensitive: true, strict: true })
  for (const route of routes) layers.register(route.path, [route.method], () => undefined)
  return (ctx) => {
    const allowed = new Set(layers.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods))
    if (allowed.size === 0) throw notFound('route')
    throw new ProblemError({
      status: 405,
      code: 'method_not_allowed',
      title: 'Method not allowed',
      detail: `This path answers ${[...allowed].join(', ')}.`,
      headers: { allow: [...allowed].join(', ') },
    })
  }
}
