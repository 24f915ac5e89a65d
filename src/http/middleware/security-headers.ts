import type { Middleware } from 'koa'

/** A year, as browsers ask of hosts that they preload; only for this host, since its neighbours are not known here. */
const TRANSPORT_SECURITY = { 'strict-transport-security': 'max-age=31536000' }

/**
 * Keeps browsers from rendering, framing or storing answers, and on https where the service has such a URL. There are no
 * CORS headers, on purpose.
 */
export function securityHeaders(publicUrl: string): Middleware {
  const overTls = publicUrl.startsWith('https://') ? TRANSPORT_SECURITY : {}
  return async (ctx, next) => {
    ctx.set({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      ...overTls,
    })
    await next()
  }
}
