import type { Middleware } from 'koa'

/** The API answers programs: nothing in it is to be rendered, framed or kept. No CORS headers, on purpose. */
export function securityHeaders(): Middleware {
  return async (ctx, next) => {
    ctx.set({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    await next()
  }
}
