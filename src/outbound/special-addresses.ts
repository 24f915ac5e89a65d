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
