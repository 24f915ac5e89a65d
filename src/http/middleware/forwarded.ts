import type { Middleware } from 'koa'
import type { TrustedProxies } from '../trusted-proxies.ts'

/** What Koa reads of a proxy in front of it. */
const FORWARDED_HEADERS = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'] as const

/** Sets `ctx.ip` to the sender's address, and drops what a peer that is no trusted proxy says of itself. */
export function forwarded(proxies: TrustedProxies): Middleware {
  return (ctx, next) => {
    const { headers, socket } = ctx.req
    // Empty once the connection is gone.
    const peer = socket.remoteAddress ?? ''
    ctx.request.ip = proxies.senderOf(peer, ctx.get('x-forwarded-for'))
    if (!proxies.has(peer)) for (const name of FORWARDED_HEADERS) Reflect.deleteProperty(headers, name)
    return next()
  }
}
