import { promises as dns } from 'node:dns'
import type { AddressGuard } from './address-guard.ts'
import { isLocalhostName } from './host-names.ts'
import { OutboundError, blockedTarget } from './failure-code.ts'

/** One answer of DNS, in the form `net.connect` takes it. */
export type ResolvedAddress = { address: string; family: 4 | 6 }

/** Finds the addresses of a host name; each one it returns has passed the guard. */
export type Resolver = {
  /** @throws OutboundError `dns_error`, `dns_timeout` or `blocked_target`. */
  resolve(hostname: string): Promise<ResolvedAddress[]>
}

type Options = {
  guard: AddressGuard
  /** Addresses of DNS servers (`192.0.2.1:53`); left out, those of the machine. */
  servers?: readonly string[]
  /** Bound on one resolution, all tries together. */
  lookupTimeoutMs?: number
}

const QUERY_TIMEOUT_MS = 1000
const QUERY_TRIES = 2
const LOOKUP_TIMEOUT_MS = 3000
/** What a query for AAAA gets once that for A is answered: some name servers never answer it. */
const AAAA_AFTER_MS = 250
/** Addresses of one family that are read, for an answer may have thousands; and that a connection tries one by one. */
const MAX_READ = 64
const MAX_USED = 8

const LOOPBACK_ADDRESSES: readonly ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/**
 * Builds a resolver on c-ares instead of `dns.lookup`: the latter waits in a pool of four threads, so a few names
 * whose server never answers would delay every other name. `/etc/hosts` and search domains are not read.
 * A name with even one blocked address among those that are read is refused as a whole: an honest public name has none.
 */
export function createResolver(options: Options): Resolver {
  const lookupTimeoutMs = options.lookupTimeoutMs ?? LOOKUP_TIMEOUT_MS
  // A burst to one host makes one query. Answers are not cached beyond it.
  const underWay = new Map<string, Promise<ResolvedAddress[]>>()

  async function resolve(hostname: string): Promise<ResolvedAddress[]> {
    if (isLocalhostName(hostname)) return resolveLocalhost(options.guard)
    const addresses = await queryOnce(hostname)
    if (addresses.some(({ address }) => options.guard.isBlocked(address))) throw blockedTarget()
    return ([4, 6] as const).flatMap((wanted) =>
      addresses.filter(({ family }) => family === wanted).slice(0, MAX_USED),
    )
  }

  function queryOnce(hostname: string): Promise<ResolvedAddress[]> {
    const shared = underWay.get(hostname)
    if (shared !== undefined) return shared
    const querying = query(hostname).finally(() => underWay.delete(hostname))
    underWay.set(hostname, querying)
    return querying
  }

  async function query(hostname: string): Promise<ResolvedAddress[]> {
    // One channel per resolution (about 15 µs) shares no socket, no server ranking and no cancellation with others.
    const channel = new dns.Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES })
    if (options.servers !== undefined) channel.setServers(options.servers)
    const cancelAfter = (ms: number) => setTimeout(() => channel.cancel(), ms)
    let timer = cancelAfter(lookupTimeoutMs)
    const hurry = (answer: string[]): string[] => {
      clearTimeout(timer)
      timer = cancelAfter(AAAA_AFTER_MS)
      return answer
    }
    try {
      const queries = [channel.resolve4(hostname).then(hurry), channel.resolve6(hostname)] as const
      const [ipv4, ipv6] = await Promise.allSettled(queries)
      const addresses = [...answersOf(ipv4, 4), ...answersOf(ipv6, 6)]
      if (addresses.length === 0) throw lookupFailure([ipv4, ipv6])
      return addresses
    } finally {
      clearTimeout(timer)
    }
  }

  return { resolve }
}

/** These two addresses are ours, not an answer of a stranger, so one that is open is enough. */
function resolveLocalhost(guard: AddressGuard): ResolvedAddress[] {
  const open = LOOPBACK_ADDRESSES.filter(({ address }) => !guard.isBlocked(address))
  if (open.length === 0) throw blockedTarget()
  return open
}

function answersOf(result: PromiseSettledResult<string[]>, family: 4 | 6): ResolvedAddress[] {
  if (result.status === 'rejected') return []
  return result.value.slice(0, MAX_READ).map((address) => ({ address, family }))
}

function lookupFailure(results: readonly PromiseSettledResult<string[]>[]): OutboundError {
  if (results.some((result) => result.status === 'rejected' && isSilence(result.reason))) {
    return new OutboundError(
      'dns_timeout',
      "The DNS servers of the endpoint's host name did not answer in time.",
    )
  }
  return new OutboundError('dns_error', "The endpoint's host name could not be resolved.")
}

function isSilence(reason: unknown): boolean {
  const code = reason instanceof Error && 'code' in reason ? reason.code : null
  return code === 'ETIMEOUT' || code === 'ECANCELLED'
}
