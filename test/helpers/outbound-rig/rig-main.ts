import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { isIP } from 'node:net'
import { generate } from 'selfsigned'
import { createHttpClient, type HttpClient, type PostResult } from '../../../src/outbound/http-client.ts'
import { assertGuardWorks } from '../../../src/outbound/pinned-connector.ts'
import { checkWebhookUrl } from '../../../src/outbound/url-rules.ts'
import { startDnsServer } from '../../integration/outbound/dns-server.ts'
import { eventually } from '../eventually.ts'
import type { RigReport } from './rig.ts'
import {
  PLAIN_PORTS,
  PUBLIC_ADDRESSES,
  REBINDING,
  type Target,
  TARGETS,
  TLS_PORTS,
  ZONE,
} from './rig-targets.ts'
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import * as net from 'node:net'
import { createServer as createTlsServer } from 'node:https'

// What runs inside the namespace that rig.ts makes; it writes its report to the standard output.

const DEADLINE_MS = 6_000

function createRigClient(allowHttp: boolean, ca: string): HttpClient {
  return createHttpClient({ allowHttp, allowedCidrs: [], timeoutMs: DEADLINE_MS, ca })
}

async function createRigCertificate(): Promise<{ key: string; cert: string }> {
  const names = ['*.rig.eu', 'localhost'].map((value) => ({ type: 2 as const, value }))
  const addresses = [
    ...PUBLIC_ADDRESSES,
    `::ffff:${PUBLIC_ADDRESSES[0]}`,
    '127.0.0.1',
    '10.0.0.1',
    '169.254.169.254',
    '::1',
  ].map((ip) => {
    return { type: 7 as const, ip }
  })
  const made = await generate([{ name: 'commonName', value: 'rig.eu' }], {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: [...names, ...addresses] },
    ],
  })
  return { key: made.private, cert: made.cert }
}

function post(client: HttpClient, url: string, reuseKey?: string): Promise<PostResult> {
  const reuse = reuseKey === undefined ? {} : { reuseKey }
  return client.post({ url, headers: {}, body: Buffer.from('{"secret":true}'), ...reuse })
}

function outcomeOf({ succeeded, failureCode }: PostResult): string {
  return succeeded ? 'delivered' : String(failureCode)
}

/** What is wrong with how a target was treated; null where it was as it should be. */
async function fault(target: Target, client: HttpClient, ledger: Ledger): Promise<string | null> {
  const { url, policy } = target
  const registered = checkWebhookUrl(url, { allowHttp: policy === 'http', allowedCidrs: [] }).ok
  const result = await post(client, url)
  const outcome = outcomeOf(result)
  await nextTurn()
  const breaches = ledger.breaches()
  const title = JSON.stringify(url)
  if (breaches.length > 0) return `${title} reached ${JSON.stringify(breaches)}`
  if (outcome !== target.outcome) return `${title} was ${outcome} instead of ${target.outcome}`
  if (registered !== target.registers) return `${title} may${registered ? '' : ' not'} be registered`
  // An address in the customer's message would map the network.
  const told = `${result.error ?? ''} ${result.response?.body ?? ''}`
  return /\d+\.\d+\.\d+|[0-9a-f]*::|rig\.eu/.test(told) ? `${title} tells ${told}` : null
}

/**
 * Hosts of blocked targets that do answer when the socket is not blocked: without them the rig would prove nothing.
 */
async function countReachable(): Promise<number> {
  const urls = TARGETS.filter(({ outcome }) => outcome === 'blocked_target').map(({ url }) => new URL(url))
  const hosts = new Set(urls.map(({ hostname }) => hostname.replace(/^\[|\]$/g, '')))
  const literals = [...hosts].filter((host) => isIP(host) !== 0 && !PUBLIC_ADDRESSES.includes(host))
  const reached = await Promise.all(literals.map((host) => isReachable(host, 443)))
  return reached.filter(Boolean).length
}

/** Outcomes of POSTs to a name that changes sides, over connections of their own and over kept ones. */
async function rebind(client: HttpClient): Promise<{ alternating: string[]; kept: string[] }> {
  const alternating: string[] = []
  for (let count = 0; count < 20; count += 1) {
    alternating.push(outcomeOf(await post(client, REBINDING.alternating)))
  }
  const kept = [outcomeOf(await post(client, REBINDING.moving, 'webhook'))]
  // Longer than it has to rest on a slow machine, and shorter than it may lie idle.
  await delay(1_000)
  // The same connection: still to the public address.
  kept.push(outcomeOf(await post(client, REBINDING.moving, 'webhook')))
  // Idle for too long: the name is looked up again, and is private now.
  await delay(6_000)
  kept.push(outcomeOf(await post(client, REBINDING.moving, 'webhook')))
  return { alternating, kept }
}

async function run(): Promise<RigReport> {
  const certificate = await createRigCertificate()
  const ledger = await startListeners(certificate)
  const reachable = await countReachable()
  const controlHits = await eventually(() => {
    const count = ledger.breaches().length
    // The listeners hear of a connection a little after who made it.
    if (count < reachable) throw new Error(`${count} of ${reachable} connections were seen`)
    return count
  })
  ledger.forget()

  await assertGuardWorks()
  await startDnsServer(ZONE, 53)
  const clients = {
    strict: createRigClient(false, certificate.cert),
    http: createRigClient(true, certificate.cert),
  }
  const faults: string[] = []
  for (const target of TARGETS) {
    const found = await fault(target, clients[target.policy], ledger)
    if (found !== null) faults.push(found)
  }
  const { alternating, kept } = await rebind(clients.strict)
  const breaches = ledger.breaches()
  const bytes = breaches.reduce((sum, hit) => sum + hit.bytes, 0)
  const publicHits = ledger.hits().length - breaches.length
  const targets = TARGETS.length + alternating.length + kept.length
  return {
    targets,
    faults,
    reachable,
    controlHits,
    alternating,
    kept,
    breaches: breaches.length,
    bytes,
    publicHits,
  }
}

process.stdout.write(`${JSON.stringify(await run())}\n`)
process.exit(0)

/** A connection that was accepted, at which of this machine's addresses, and how many bytes came over it. */
type Hit = { address: string; port: number; bytes: number }

/** Every connection that anything made to the listeners, from the first byte of the TCP handshake on. */
type Ledger = { hits(): Hit[]; breaches(): Hit[]; forget(): void }

/** Listens at every address of the rig, with a certificate that would do for a private address too. */
async function startListeners(certificate: { key: string; cert: string }): Promise<Ledger> {
  const sockets: { socket: net.Socket; address: string; port: number }[] = []
  const note = (socket: net.Socket): void => {
    const address = (socket.localAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '')
    sockets.push({ socket: socket.on('error', () => undefined), address, port: socket.localPort ?? 0 })
  }
  for (const port of [...TLS_PORTS, ...PLAIN_PORTS]) {
    const isSecure = TLS_PORTS.includes(port)
    const server = isSecure ? createTlsServer(certificate, confirm) : createHttpServer(confirm)
    server.on('connection', note)
    server.listen(port, '::')
    await once(server, 'listening')
  }

  const hits = (): Hit[] =>
    sockets.map(({ socket, address, port }) => ({ address, port, bytes: socket.bytesRead }))
  return {
    hits,
    breaches: () => hits().filter(({ address }) => !PUBLIC_ADDRESSES.includes(address)),
    forget: () => void sockets.splice(0),
  }
}

function confirm(request: IncomingMessage, response: ServerResponse): void {
  request.resume()
  request.on('end', () => {
    if (request.url === '/redirect') response.writeHead(307, { location: 'http://169.254.169.254/' })
    response.end('ok')
  })
}

/** Whether a plain socket, without a guard, gets through to that host. */
async function isReachable(host: string, port: number): Promise<boolean> {
  const socket = net.connect({ host, port, timeout: 1000 })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
