import { BlockList, isIP } from 'node:net'
import { DENIED_IPV4_CIDRS, DENIED_IPV6_CIDRS, GLOBAL_UNICAST_IPV6_CIDR } from './special-addresses.ts'

/** A network in CIDR form. `address` is kept as written; its host bits do not matter. */
export type Cidr = { address: string; prefix: number; family: 'ipv4' | 'ipv6' }

/** Says which addresses nothing may be sent to. */
export type AddressGuard = { isBlocked(address: string): boolean }

/**
 * Reads `127.0.0.0/8` or `fd00::/8`; null for everything else. A prefix of 0 is null as well: opening a whole
 * address family would switch the guard off. So is an IPv4-mapped network, which is written as IPv4.
 */
export function parseCidr(text: string): Cidr | null {
  const match = /^([0-9a-f.:]+)\/([1-9][0-9]{0,2})$/i.exec(text)
  const address = match?.[1]
  if (address === undefined) return null
  const prefix = Number(match?.[2])
  const version = isIP(address)
  if (version === 4) return prefix <= 32 ? { address, prefix, family: 'ipv4' } : null
  if (version !== 6 || embeddedIpv4(address) !== null) return null
  return prefix <= 128 ? { address, prefix, family: 'ipv6' } : null
}

const denied = blockListOf([...DENIED_IPV4_CIDRS, ...DENIED_IPV6_CIDRS])
const globalUnicast = blockListOf([GLOBAL_UNICAST_IPV6_CIDR])

/**
 * Builds the guard that judges each address a socket would dial. It fails closed: what is no plain IP address,
 * or carries a zone, is blocked. `allowedCidrs` opens private networks again, also when DNS gives them in
 * IPv4-mapped form; it comes from the operator, never from a customer.
 * @throws Error when an entry of `allowedCidrs` is not a CIDR that {@link parseCidr} accepts.
 */
export function createAddressGuard(options: { allowedCidrs: readonly string[] }): AddressGuard {
  const allowed = blockListOf(options.allowedCidrs)

  function isBlocked(address: string): boolean {
    // BlockList.check answers false for a zone and for garbage, so neither may reach it.
    const version = address.includes('%') ? 0 : isIP(address)
    if (version === 0) return true
    const ipv4 = version === 4 ? address : embeddedIpv4(address)
    if (ipv4 !== null) return !allowed.check(ipv4, 'ipv4') && denied.check(ipv4, 'ipv4')
    if (allowed.check(address, 'ipv6')) return false
    return !globalUnicast.check(address, 'ipv6') || denied.check(address, 'ipv6')
  }

  return { isBlocked }
}

function blockListOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of cidrs) {
    const cidr = parseCidr(text)
    if (cidr === null) throw new Error(`Not an acceptable CIDR: ${text}`)
    list.addSubnet(cidr.address, cidr.prefix, cidr.family)
  }
  return list
}

/** The IPv4 address inside `::ffff:a.b.c.d`, in whichever spelling; null for every other IPv6 address. */
function embeddedIpv4(ipv6: string): string | null {
  const canonical = new URL(`http://[${ipv6}]`).hostname
  const match = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(canonical)
  if (match === null) return null
  const words = [match[1], match[2]].map((word) => Number.parseInt(word ?? '', 16))
  return words.flatMap((word) => [word >> 8, word & 0xff]).join('.')
}
