import { createAddressGuard } from './address-guard.ts'
import { createConnector } from './pinned-connector.ts'
import type { Connect } from './pinned-connector.ts'
import { OutboundError } from './failure-code.ts'
import { createResolver } from './resolver.ts'

/** Loopback in three spellings and by name, and the metadata service of most clouds. */
const FORBIDDEN_HOSTS: readonly string[] = [
  '127.0.0.1',
  '[::1]',
  '[::ffff:7f00:1]',
  'localhost',
  '169.254.169.254',
]
// Only spent when the guard is broken.
const CONNECT_TIMEOUT_MS = 1000

/**
 * Proves at start that the connector refuses private addresses on this machine, this Node and these packages.
 * No allowed network is given, whatever the configuration opens. Sends nothing and takes a few milliseconds.
 * @param connect - the connector to try; left out, one with the strict policy.
 * @throws Error when an address is not refused: the process must not go on.
 */
export async function assertGuardWorks(connect: Connect = createStrictConnector()): Promise<void> {
  const refusals = await Promise.all(FORBIDDEN_HOSTS.map((hostname) => isRefused(connect, hostname)))
  const reachable = FORBIDDEN_HOSTS.filter((_hostname, index) => refusals[index] !== true)
  if (reachable.length > 0)
    throw new Error(`The outbound address guard does not block ${reachable.join(', ')}`)
}

function createStrictConnector(): Connect {
  const guard = createAddressGuard({ allowedCidrs: [] })
  const resolver = createResolver({ guard })
  return createConnector({ allowHttp: false, guard, resolver, connectTimeoutMs: CONNECT_TIMEOUT_MS })
}

async function isRefused(connect: Connect, hostname: string): Promise<boolean> {
  try {
    const { socket } = await connect({ protocol: 'https:', hostname, port: '443' })
    socket.destroy()
    return false
  } catch (error) {
    return error instanceof OutboundError && error.code === 'blocked_target'
  }
}
