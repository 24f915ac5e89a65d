import { BlockList, isIP } from 'node:net'
import { withoutBrackets } from './host-names.ts'

/**
 * IPv4 networks a webhook never goes to: every row of IANA's special-purpose registry (2025-10-09) and three more.
 * @see https://www.iana.org/assignments/iana-ipv4-special-registry
 */
export const DENIED_IPV4_CIDRS: readonly string[] = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; also one cloud's metadata service
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link local; metadata services of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; one cloud's metadata service
  '192.0.2.0/24', // documentation 1
  '192.31.196.0/24', // AS112: public, but never a webhook host
  '192.52.193.0/24', // AMT: public, but never a webhook host
  '192.88.99.0/24', // 6to4 relay, deprecated
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112 delegation: public, but never a webhook host
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation 2
  '203.0.113.0/24', // documentation 3
  '240.0.0.0/4', // reserved, and the limited broadcast address
  '224.0.0.0/4', // ours: multicast, which the registry does not list
  '168.63.129.16/32', // ours: Azure's host agent, although the address is in a public range
]

/** The only IPv6 space handed out for global unicast; whatever lies outside is denied without a row of its own. */
export const GLOBAL_UNICAST_IPV6_CIDR = '2000::/3'

/**
 * Special networks inside {@link GLOBAL_UNICAST_IPV6_CIDR}.
 * @see https://www.iana.org/assignments/iana-ipv6-special-registry
 */
export const DENIED_IPV6_CIDRS: readonly string[] = [
  '2001::/23', // protocol assignments: Teredo, benchmarking, ORCHID, DRIP, anycast; denied as a whole
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: an IPv4 address in disguise
  '2620:4f:8000::/48', // AS112 delegation
  '3fff::/20', // documentation
]

/** A network in CIDR form. `address` is stored as written; its host bits do not matter. */
type Cidr = { address: string; prefix: number; family: 'ipv4' | 'ipv6' }

/** Decides which addresses nothing may be sent to. */
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
  if (version !== 6 || ipv4Behind(MAPPED, address) !== null) return null
  return prefix <= 128 ? { address, prefix, family: 'ipv6' } : null
}

/** The first six words of `::ffff:a.b.c.d` and of `64:ff9b::a.b.c.d` (RFC 6052). */
const MAPPED: readonly number[] = [0, 0, 0, 0, 0, 0xffff]
const NAT64: readonly number[] = [0x64, 0xff9b, 0, 0, 0, 0]

const denied = blockListOf([...DENIED_IPV4_CIDRS, ...DENIED_IPV6_CIDRS])
const globalUnicast = blockListOf([GLOBAL_UNICAST_IPV6_CIDR])

/**
 * Builds the guard that checks each address before a socket connects to it. It fails closed: what is no plain IP address,
 * or carries a zone, is blocked. `allowedCidrs` opens private networks again, also when DNS gives them in
 * IPv4-mapped form; it comes from the operator, never from a customer. With `64:ff9b::/96` in it, for a network that
 * reaches IPv4 through NAT64, an address of that network is checked as the IPv4 address in it.
 * @throws Error when an entry of `allowedCidrs` is not a CIDR that {@link parseCidr} accepts.
 */
export function createAddressGuard(options: { allowedCidrs: readonly string[] }): AddressGuard {
  const allowed = blockListOf(options.allowedCidrs)

  function isBlocked(address: string): boolean {
    // BlockList.check answers false for a zone and for garbage, so neither may reach it.
    const version = address.includes('%') ? 0 : isIP(address)
    if (version === 0) return true
    const ipv4 = version === 4 ? address : ipv4Behind(MAPPED, address)
    if (ipv4 !== null) return isBlockedIpv4(ipv4)
    if (allowed.check(address, 'ipv6')) {
      // On a network with NAT64 every IPv4 host has such an address; the private ones are no more open than before.
      const translated = ipv4Behind(NAT64, address)
      return translated !== null && isBlockedIpv4(translated)
    }
    return !globalUnicast.check(address, 'ipv6') || denied.check(address, 'ipv6')
  }

  function isBlockedIpv4(address: string): boolean {
    return !allowed.check(address, 'ipv4') && denied.check(address, 'ipv4')
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

/**
 * The IPv4 address behind an IPv6 address that begins with these six words, in whichever spelling; null without them.
 */
function ipv4Behind(prefix: readonly number[], ipv6: string): string | null {
  const words = wordsOf(ipv6)
  if (prefix.some((word, index) => words[index] !== word)) return null
  return words
    .slice(6)
    .flatMap((word) => [word >> 8, word & 0xff])
    .join('.')
}

/** The eight words of an IPv6 address, however it is spelled. The URL parser writes every spelling the same way, without a dotted part. */
function wordsOf(ipv6: string): number[] {
  const canonical = withoutBrackets(new URL(`http://[${ipv6}]`).hostname)
  const [head = [], tail = []] = canonical
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':')).map((word) => Number.parseInt(word, 16)))
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail]
}

// Public addresses are open without a range. What `POSTHORN_ALLOWED_CIDRS` opens are private networks, and all of them
// together are small: ranges that are wide, or many, switch the address guard off instead.

/** The shortest prefix that a range may have: that of 10.0.0.0/8, the widest private network of IPv4. */
const MIN_PREFIX = { ipv4: 8, ipv6: 16 } as const

/** The whole of IPv6's private addresses (RFC 4193); ranges inside it may have any prefix. */
const UNIQUE_LOCAL = blockListOf(['fc00::/7'])
const UNIQUE_LOCAL_PREFIX = 7

/** Both ends of ::ffff:0:0/96. In `BlockList` a range that holds it matches every IPv4 address. */
const MAPPED_FIRST = 0xffff_0000_0000n
const MAPPED_LAST = 0xffff_ffff_ffffn

/** All ranges of a family together may cover one part in this many of it. */
const MIN_SHARE = 16n

/**
 * The ranges that open more than private networks: those with a prefix below /8 (IPv4) or /16 (IPv6, but for what lies
 * inside fc00::/7), those of IPv6 that hold all of IPv4, and all ranges of a family that together cover more than a
 * sixteenth of it. Empty when all is well.
 */
export function findTooWideRanges(ranges: readonly string[]): string[] {
  const cidrs = ranges.flatMap((text) => {
    const cidr = parseCidr(text)
    return cidr === null ? [] : [{ text, cidr }]
  })
  const wide = cidrs.filter(
    ({ cidr }) => coversIpv4(cidr) || (cidr.prefix < MIN_PREFIX[cidr.family] && !isUniqueLocal(cidr)),
  )
  if (wide.length > 0) return wide.map(({ text }) => text)
  return (['ipv4', 'ipv6'] as const).flatMap((family) => {
    const ofFamily = cidrs.filter(({ cidr }) => cidr.family === family)
    const limit = (1n << bitsOf(family)) / MIN_SHARE
    return sizeOfUnion(ofFamily.map(({ cidr }) => intervalOf(cidr))) > limit
      ? ofFamily.map(({ text }) => text)
      : []
  })
}

function coversIpv4(cidr: Cidr): boolean {
  if (cidr.family === 'ipv4') return false
  const { first, last } = intervalOf(cidr)
  return first <= MAPPED_FIRST && last >= MAPPED_LAST
}

function isUniqueLocal({ address, prefix, family }: Cidr): boolean {
  return prefix >= UNIQUE_LOCAL_PREFIX && UNIQUE_LOCAL.check(address, family)
}

function bitsOf(family: Cidr['family']): bigint {
  return family === 'ipv4' ? 32n : 128n
}

/** Both ends belong to it. */
type Interval = { first: bigint; last: bigint }

function intervalOf({ address, prefix, family }: Cidr): Interval {
  const parts = family === 'ipv4' ? address.split('.').map(Number) : wordsOf(address)
  const partBits = family === 'ipv4' ? 8n : 16n
  const value = parts.reduce((sum, part) => (sum << partBits) | BigInt(part), 0n)
  const hostBits = bitsOf(family) - BigInt(prefix)
  const first = (value >> hostBits) << hostBits
  return { first, last: first + (1n << hostBits) - 1n }
}

/** How many addresses lie in at least one of the intervals. */
function sizeOfUnion(intervals: readonly Interval[]): bigint {
  const sorted = intervals.toSorted((a, b) => (a.first < b.first ? -1 : 1))
  let [size, counted] = [0n, -1n]
  for (const { first, last } of sorted) {
    if (last <= counted) continue
    size += last - (first > counted ? first - 1n : counted)
    counted = last
  }
  return size
}
