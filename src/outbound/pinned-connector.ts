import * as net from 'node:net'
import * as tls from 'node:tls'
import { type AddressGuard, createAddressGuard } from './address-guard.ts'
import { withoutBrackets, withoutTrailingDot, isLoopbackAddress, type AllowHttp } from './host-names.ts'
import { OutboundError, blockedTarget, formatSeconds } from './failure-code.ts'
import { type ResolvedAddress, type Resolver, createResolver } from './resolver.ts'
import { onAbort, raceAbort } from '../timers.ts'

/** Where to connect to: the parts of a URL. An aborted `signal` ends the try and the socket. */
type ConnectTarget = {
  protocol: string
  hostname: string
  port: string
  signal?: AbortSignal
  onPhase?: OnPhase | undefined
}

/** What a connection has behind it: the name of its host is resolved, it is open, its TLS handshake is done. */
export type OnPhase = (phase: 'dns' | 'connect' | 'tls') => void

/** A socket that is ready for HTTP. `roundTripMs`: what the TCP handshake took, one way there and back. */
export type OpenSocket = { socket: net.Socket; roundTripMs: number }

/** Opens a connection; `onPhase` is called as each phase ends. @throws OutboundError, or the error of the socket. */
export type Connect = (target: ConnectTarget) => Promise<OpenSocket>

type Options = {
  allowHttp: AllowHttp
  guard: AddressGuard
  resolver: Resolver
  /** DNS, TCP and TLS together. */
  connectTimeoutMs: number
  /** PEM certificates trusted besides the usual roots; for tests and development. */
  ca?: string
}

/**
 * For each address of a host but the last, which gets what is left. Node's own 250 ms are less than a round trip to the
 * other side of the world; this outlasts a lost packet, which is sent again after a second.
 */
const ADDRESS_TIMEOUT = { autoSelectFamilyAttemptTimeout: 1_500 }

/**
 * Builds the only function that opens outbound connections. Every address is checked before a socket to it exists, whether
 * it is in the URL (undici and Node resolve nothing then) or comes from DNS, and the socket can use no other: no second
 * DNS query could return another address. The address that was reached is checked again.
 */
export function createConnector(options: Options): Connect {
  const secureContext = createSecureContext(options.ca)

  async function connect(target: ConnectTarget): Promise<OpenSocket> {
    const stop = new AbortController()
    const ignoreSignal = onAbort([target.signal], (reason) => stop.abort(reason))
    const timer = setTimeout(
      () => stop.abort(connectTimeout(options.connectTimeoutMs)),
      options.connectTimeoutMs,
    )
    try {
      const addresses = await raceAbort(checkedAddresses(target), stop.signal)
      // A socket does not see a signal that was aborted before it was opened.
      stop.signal.throwIfAborted()
      if (net.isIP(withoutBrackets(target.hostname)) === 0) target.onPhase?.('dns')
      return await raceAbort(openSocket(target, addresses, stop.signal), stop.signal)
    } finally {
      clearTimeout(timer)
      ignoreSignal()
    }
  }

  async function checkedAddresses(target: ConnectTarget): Promise<ResolvedAddress[]> {
    const isPlain = target.protocol === 'http:'
    if (isPlain ? options.allowHttp === false : target.protocol !== 'https:') throw blockedTarget()
    const addresses = await addressesOf(withoutBrackets(target.hostname))
    const isLoopbackOnly = isPlain && options.allowHttp === 'loopback'
    if (isLoopbackOnly && !addresses.every(({ address }) => isLoopbackAddress(address))) throw blockedTarget()
    return addresses
  }

  async function addressesOf(host: string): Promise<ResolvedAddress[]> {
    const version = net.isIP(host)
    if (version === 0) return options.resolver.resolve(host)
    if (options.guard.isBlocked(host)) throw blockedTarget()
    return [{ address: host, family: version === 4 ? 4 : 6 }]
  }

  function openSocket(
    target: ConnectTarget,
    addresses: ResolvedAddress[],
    signal: AbortSignal,
  ): Promise<OpenSocket> {
    return new Promise((resolve, reject) => {
      const startedAtMs = performance.now()
      let roundTripMs = 0
      const isSecure = target.protocol === 'https:'
      const socket = isSecure ? startTls(target, addresses) : startTcp(target, addresses)
      // In the tick that creates the socket, and for its whole life: an error without a listener ends the process.
      socket.on('error', (error) => {
        reject(error)
        // Node.js leaves a TLS socket open whose peer breaks the protocol after the handshake.
        socket.destroy()
      })
      const destroy = (): void => void socket.destroy()
      signal.addEventListener('abort', destroy, { once: true })
      socket.setNoDelay(true)
      socket.once('connect', () => {
        roundTripMs = performance.now() - startedAtMs
        target.onPhase?.('connect')
      })
      socket.once(isSecure ? 'secureConnect' : 'connect', () => {
        signal.removeEventListener('abort', destroy)
        if (isSecure) target.onPhase?.('tls')
        const refusal = refuseRemote(socket.remoteAddress)
        if (refusal === null) {
          resolve({ socket, roundTripMs })
          return
        }
        socket.destroy()
        reject(refusal)
      })
    })
  }

  function startTcp(target: ConnectTarget, addresses: ResolvedAddress[]): net.Socket {
    const port = Number(target.port === '' ? 80 : target.port)
    return net.connect({
      host: withoutBrackets(target.hostname),
      port,
      lookup: pinnedLookup(addresses),
      ...ADDRESS_TIMEOUT,
    })
  }

  function startTls(target: ConnectTarget, addresses: ResolvedAddress[]): tls.TLSSocket {
    const host = withoutBrackets(target.hostname)
    return tls.connect({
      host,
      port: Number(target.port === '' ? 443 : target.port),
      lookup: pinnedLookup(addresses),
      ...ADDRESS_TIMEOUT,
      // RFC 6066: SNI carries no address and no trailing dot. Never from a header, which a customer might shape.
      ...(net.isIP(host) === 0 ? { servername: withoutTrailingDot(host) } : {}),
      secureContext,
      ALPNProtocols: ['http/1.1'],
      // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment has no effect.
      rejectUnauthorized: true,
    })
  }

  function refuseRemote(remoteAddress: string | undefined): OutboundError | null {
    // The system no longer knows the peer of a socket that was reset meanwhile.
    if (remoteAddress === undefined) return new OutboundError('connection_reset', 'The connection was reset.')
    return options.guard.isBlocked(remoteAddress) ? blockedTarget() : null
  }

  return connect
}

/** One context for all sockets: with extra certificates it takes some 20 ms to build. */
function createSecureContext(ca: string | undefined): tls.SecureContext {
  const minVersion = 'TLSv1.2'
  if (ca === undefined) return tls.createSecureContext({ minVersion })
  return tls.createSecureContext({ minVersion, ca: [...tls.rootCertificates, ca] })
}

/**
 * A `lookup` that knows its answer. Node asks for all addresses, except with automatic family selection off.
 * Answers on the next tick, as Node's own `lookup` does: a connection that the system refuses at once (no route, no
 * file descriptor) would otherwise fail within `tls.connect`, before its error has a listener.
 */
function pinnedLookup(addresses: readonly ResolvedAddress[]): net.LookupFunction {
  return (_hostname, lookupOptions, callback) => {
    const [first] = addresses
    process.nextTick(() => {
      if (first === undefined) callback(blockedTarget(), '')
      else if (lookupOptions.all === true) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    })
  }
}

function connectTimeout(timeoutMs: number): OutboundError {
  return new OutboundError(
    'connect_timeout',
    `No connection could be set up within ${formatSeconds(timeoutMs)}.`,
  )
}

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
