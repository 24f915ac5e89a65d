import type { Middleware } from 'koa'
import type { Logger } from '../../observability/logger.ts'
import type { TrustedProxies } from './trusted-proxies.ts'

/** The headers of a proxy that Koa reads. */
const FORWARDED_HEADERS = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'] as const

/**
 * Sets `ctx.ip` to the sender's address, and removes forwarding headers unless the peer is a trusted proxy. Logs once per
 * process that one of another peer was ignored: all senders behind such a proxy count as one.
 */
export function forwarded(proxies: TrustedProxies, logger: Pick<Logger, 'warn'>): Middleware {
  let wasLogged = false

  function logIgnored(peer: string): void {
    if (wasLogged) return
    wasLogged = true
    const text = 'X-Forwarded-For of a peer that is not in TRUSTED_PROXIES is ignored'
    logger.warn({ event: 'http.proxy_untrusted', peer }, text)
  }

  return (ctx, next) => {
    const { headers, socket } = ctx.req
    // Empty once the connection is gone.
    const peer = socket.remoteAddress ?? ''
    const forwardedFor = ctx.get('x-forwarded-for')
    ctx.request.ip = proxies.senderOf(peer, forwardedFor)
    if (!proxies.has(peer)) {
      if (forwardedFor !== '') logIgnored(peer)
      for (const name of FORWARDED_HEADERS) Reflect.deleteProperty(headers, name)
    }
    return next()
  }
}
