import { parseCidr, wordsOf, type Cidr } from './address-guard.ts'

// Public addresses are open without a range. What `POSTHORN_ALLOWED_CIDRS` opens are private networks, and all of them
// together are small: ranges that are wide, or many, switch the address guard off instead.

/** The shortest prefix that a range may have: that of 10.0.0.0/8, the widest private network of IPv4. */
const MIN_PREFIX = { ipv4: 8, ipv6: 16 } as const

/** The whole of IPv6's private addresses (RFC 4193); ranges inside it may have any prefix. */
const UNIQUE_LOCAL: Cidr = { address: 'fc00::', prefix: 7, family: 'ipv6' }

/** All ranges of a family together may cover one part in this many of it. */
const MIN_SHARE = 16n

/** Both ends belong to it. */
type Interval = { first: bigint; last: bigint }

/**
 * The ranges that open more than private networks: those with a prefix below /8 (IPv4) or /16 (IPv6, but for what lies
 * inside fc00::/7), and all ranges of a family that together cover more than a sixteenth of it. Empty when all is well.
 */
export function findTooWideRanges(ranges: readonly string[]): string[] {
  const cidrs = ranges.flatMap((text) => {
    const cidr = parseCidr(text)
    return cidr === null ? [] : [{ text, cidr }]
  })
  const wide = cidrs.filter(
    ({ cidr }) => cidr.prefix < MIN_PREFIX[cidr.family] && !isInside(cidr, UNIQUE_LOCAL),
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

function bitsOf(family: Cidr['family']): bigint {
  return family === 'ipv4' ? 32n : 128n
}

function intervalOf({ address, prefix, family }: Cidr): Interval {
  const parts = family === 'ipv4' ? address.split('.').map(Number) : wordsOf(address)
  const partBits = family === 'ipv4' ? 8n : 16n
  const value = parts.reduce((sum, part) => (sum << partBits) | BigInt(part), 0n)
  const hostBits = bitsOf(family) - BigInt(prefix)
  const first = (value >> hostBits) << hostBits
  return { first, last: first + (1n << hostBits) - 1n }
}

function isInside(inner: Cidr, outer: Cidr): boolean {
  if (inner.family !== outer.family) return false
  const [{ first, last }, around] = [intervalOf(inner), intervalOf(outer)]
  return first >= around.first && last <= around.last
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
