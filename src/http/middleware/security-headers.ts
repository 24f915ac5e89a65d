import type { Middleware } from 'koa'

/** Keeps browsers from rendering, framing or storing answers. There are no CORS headers, on purpose. */
export function securityHeaders(): Middleware {
  return async (ctx, next) => {
    ctx.set({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    await next()
  }
}
