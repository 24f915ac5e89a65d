import { BlockList, isIP } from 'node:net'
import { parseSenderAddress } from './sender-network.ts'

/** Whose word about the sender of a request counts. */
export type TrustedProxies = {
  has(address: string): boolean
  /**
   * The address of a request's sender, from that of the connection's peer and the `X-Forwarded-For` header. Each proxy
   * adds the address that it saw to the right, so the first one from the right that is no trusted proxy is the sender's;
   * what stands left of it is the sender's own invention. The peer itself where that is no trusted proxy, and where
   * something on the way is no address.
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
    // A zone, as in fe80::1%eth0, is no part of the address; BlockList would find no address at all.
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
      // Trusted all the way: the request began at one of our own machines.
      return hops[0] ?? peer
    },
  }
}
