import { isIP, isIPv6 } from 'node:net'

/** Some proxies write the port of the sender too: `203.0.113.7:50123`, `[2001:db8::7]:50123`. */
const WITH_PORT = /^(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)$/

/** The address that a proxy wrote, without port and zone; null for what is no IP address. */
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
 * What one sender is taken to hold: an IPv4 address as it is, and the /64 of an IPv6 address, of which one subscriber
 * has all (RFC 6177). What is no address stands for itself.
 */
export function senderNetwork(address: string): string {
  const plain = withoutPort(address)
  if (!isIPv6(plain)) return plain
  // Canonical, with an IPv4 address in it as two groups.
  const text = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  // An IPv4 sender as a socket of both families shows it: the /64 would be all of IPv4.
  if (text.startsWith('::ffff:')) return text
  const [left = [], right = []] = text.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0')
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`
}
