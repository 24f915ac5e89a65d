import { BlockList, isIP } from 'node:net'

/** True for `localhost` and every name under it, which never leave this machine (RFC 6761, section 6.3). */
export function isLocalhostName(hostname: string): boolean {
  const name = withoutTrailingDot(hostname)
  return name === 'localhost' || name.endsWith('.localhost')
}

/** The name without the one dot that marks it as fully qualified. */
export function withoutTrailingDot(hostname: string): string {
  return hostname.endsWith('.') ? hostname.slice(0, -1) : hostname
}

/** The address inside the brackets a URL puts around IPv6; every other host unchanged. */
export function withoutBrackets(hostname: string): string {
  return hostname.startsWith('[') && hostname.endsWith(']') ? hostname.slice(1, -1) : hostname
}

/** Which receivers may be plain http: all of them, those on this machine's loopback, or none. */
export type AllowHttp = boolean | 'loopback'

const loopbackIpv6 = new BlockList()
loopbackIpv6.addAddress('::1', 'ipv6')
loopbackIpv6.addSubnet('::ffff:127.0.0.0', 104, 'ipv6')

/** True for an address of this machine's loopback, an IPv4-mapped one included; false for what is no plain address. */
export function isLoopbackAddress(address: string): boolean {
  const version = address.includes('%') ? 0 : isIP(address)
  return version === 4 ? address.startsWith('127.') : version === 6 && loopbackIpv6.check(address, 'ipv6')
}

/** True for a host that never leaves this machine: a loopback address, in brackets or not, or a name of localhost. */
export function isLoopbackHost(host: string): boolean {
  return isLoopbackAddress(withoutBrackets(host)) || isLocalhostName(host)
}
