import { BlockList, isIP } from 'node:net'
import { parseSenderAddress } from '../limits/sender-network.ts'

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
      if (!has(peer) || forwardedFor.trim() === '') return peer
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
