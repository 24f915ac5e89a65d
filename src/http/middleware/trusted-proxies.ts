import { BlockList, isIP, isIPv6 } from 'node:net'
import type { Middleware } from 'koa'
import type { Logger } from '../../observability/logger.ts'

/** The proxies whose forwarding headers are trusted. */
export type TrustedProxies = {
  has(address: string): boolean
  /**
   * Returns the address of a request's sender. Each proxy appends the address of its peer to `X-Forwarded-For`, so the
   * rightmost one that is no trusted proxy is the sender's; the sender can forge everything to the left of it. Returns
   * the peer itself where that is no trusted proxy, and where the header contains something that is no address.
   */
  senderOf(peer: string, forwardedFor: string): string
}

/** `ranges` in CIDR form, each checked by the setting. */
export function createTrustedProxies(ranges: readonly string[]): TrustedProxies {
  const trusted = new BlockList()
  for (const range of ranges) {
    const [address = '', prefix = ''] = range.split('/')
    trusted.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }

  function has(address: string): boolean {
    // Without the zone, as in fe80::1%eth0: BlockList would reject the address.
    const plain = parseSenderAddress(address)
    return plain !== null && trusted.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')
  }

  return {
    has,
    senderOf(peer, forwardedFor) {
      if (forwardedFor.trim() === '' || !has(peer)) return peer
      const hops = forwardedFor.split(',').map((hop) => parseSenderAddress(hop.trim()))
      for (const hop of hops.toReversed()) {
        if (hop === null) return peer
        if (!has(hop)) return hop
      }
      // All hops are trusted: the request began at the first of them.
      return hops[0] ?? peer
    },
  }
}

/** An address with a port, as some proxies write it: `203.0.113.7:50123`, `[2001:db8::7]:50123`. */
const WITH_PORT = /^(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)$/

/** Returns the address that a proxy wrote, without port and zone; null for text that is no IP address. */
function parseSenderAddress(text: string): string | null {
  const plain = withoutPort(text)
  return isIP(plain) === 0 ? null : plain
}

function withoutPort(text: string): string {
  const [, ipv6, ipv4] = WITH_PORT.exec(text) ?? []
  const [plain = ''] = (ipv6 ?? ipv4 ?? text).split('%', 1)
  return plain
}

/**
 * Returns the network that is counted as one sender: an IPv4 address itself, or the /64 of an IPv6 address, which one
 * subscriber owns as a whole (RFC 6177). Text that is no address is returned as it is.
 */
export function senderNetwork(address: string): string {
  const plain = withoutPort(address)
  if (!isIPv6(plain)) return plain
  // The canonical form, in which an embedded IPv4 address is two groups.
  const text = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  // An IPv4 sender on a dual-stack socket: its /64 would be all of IPv4.
  if (text.startsWith('::ffff:')) return text
  const [left = [], right = []] = text.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0')
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`
}

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
    ctx.request.ip = peer
    if (FORWARDED_HEADERS.every((name) => headers[name] === undefined)) return next()
    const forwardedFor = ctx.get('x-forwarded-for')
    if (proxies.has(peer)) ctx.request.ip = proxies.senderOf(peer, forwardedFor)
    else {
      if (forwardedFor !== '') logIgnored(peer)
      for (const name of FORWARDED_HEADERS) Reflect.deleteProperty(headers, name)
    }
    return next()
  }
}
