import type { Middleware } from 'koa'
import { badRequest } from '../../errors.ts'

/** Throws 400 for a request target that is no URL, such as `http://[bad/`: reading its path would throw. */
export function requestTarget(): Middleware {
  return async (ctx, next) => {
    if (pathOf(ctx) === null) throw badRequest('malformed_path', 'The target of the request is not a URL.')
    await next()
  }
}

/** Returns the path, or null when the request target is no URL. */
export function pathOf(ctx: { readonly path: string }): string | null {
  try {
    return ctx.path
  } catch {
    return null
  }
}
