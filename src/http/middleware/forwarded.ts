import type { Middleware } from 'koa'
import type { TrustedProxies } from './trusted-proxies.ts'

/** The headers of a proxy that Koa reads. */
const FORWARDED_HEADERS = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'] as const

/** Sets `ctx.ip` to the sender's address, and removes forwarding headers unless the peer is a trusted proxy. */
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
