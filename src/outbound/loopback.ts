import { BlockList, isIP } from 'node:net'
import { isLocalhostName, withoutBrackets } from './host-names.ts'

/** Which receivers may be plain http: all of them, those on this machine's loopback, or none. */
export type AllowHttp = boolean | 'loopback'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** True for an address of this machine's loopback, an IPv4-mapped one included; false for what is no plain address. */
export function isLoopbackAddress(address: string): boolean {
  const version = address.includes('%') ? 0 : isIP(address)
  return version !== 0 && loopback.check(address, version === 4 ? 'ipv4' : 'ipv6')
}

/** True for a host that never leaves this machine: a loopback address, in brackets or not, or a name of localhost. */
export function isLoopbackHost(host: string): boolean {
  return isLoopbackAddress(withoutBrackets(host)) || isLocalhostName(host)
}
