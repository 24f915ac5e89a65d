import type { Socket } from 'node:net'
import type { TrustedProxies } from '../middleware/trusted-proxies.ts'
import { senderNetwork } from './sender-network.ts'

/** What a new connection may be used for; `probes`: every other request on it is refused. */
type Admitted = 'all' | 'probes' | 'refused'

export type Admission = {
  /** Counts the connection until it closes. */
  admit(socket: Socket): Admitted
}

/** Connections beyond the limit, on which probes are answered. */
const MAX_PROBE_CONNECTIONS = 64

/** One sender may hold this part of all connections, so that silent ones of its own do not keep out the others. */
const SHARE_OF_SENDER = 1 / 2

/**
 * Admits up to `maxConnections`, of one sender up to its share: an IPv4 address or a /64 of IPv6. A trusted proxy has no
 * share, since it carries many senders.
 */
export function createAdmission(options: {
  maxConnections: number
  proxies: Pick<TrustedProxies, 'has'>
}): Admission {
  const { maxConnections, proxies } = options
  const maxOfSender = Math.ceil(maxConnections * SHARE_OF_SENDER)
  const ofSender = new Map<string, number>()
  let open = 0
  let openForProbes = 0

  function countSender(sender: string, change: 1 | -1): void {
    const count = (ofSender.get(sender) ?? 0) + change
    if (count === 0) ofSender.delete(sender)
    else ofSender.set(sender, count)
  }

  return {
    admit(socket) {
      // Empty once the connection is gone.
      const address = socket.remoteAddress ?? ''
      const sender = senderNetwork(address)
      const hasShare = (ofSender.get(sender) ?? 0) < maxOfSender || proxies.has(address)
      if (open < maxConnections && hasShare) {
        open++
        countSender(sender, 1)
        socket.once('close', () => {
          open--
          countSender(sender, -1)
        })
        return 'all'
      }
      if (openForProbes >= MAX_PROBE_CONNECTIONS) return 'refused'
      openForProbes++
      socket.once('close', () => openForProbes--)
      return 'probes'
    },
  }
}
