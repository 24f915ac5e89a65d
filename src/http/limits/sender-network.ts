import { isIP, isIPv6 } from 'node:net'

/** An address with a port, as some proxies write it: `203.0.113.7:50123`, `[2001:db8::7]:50123`. */
const WITH_PORT = /^(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)$/

/** Returns the address that a proxy wrote, without port and zone; null for text that is no IP address. */
export function parseSenderAddress(text: string): string | null {
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
