import type { Middleware } from 'koa'
import { badRequest } from '../../errors.ts'

/** Refuses a request line whose target is no URL, such as `GET http://[bad/ HTTP/1.1`: reading its path throws. */
export function requestTarget(): Middleware {
  return async (ctx, next) => {
    if (pathOf(ctx) === null) throw badRequest('malformed_path', 'The target of the request is not a URL.')
    await next()
  }
}

/** The path, or null when there is none to be read. */
export function pathOf(ctx: { readonly path: string }): string | null {
  try {
    return ctx.path
  } catch {
    return null
  }
}
