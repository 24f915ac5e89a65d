import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@temporalio/client'
import { NativeConnection, type NativeConnectionOptions } from '@temporalio/worker'
import type { Logger } from '../observability/logger.ts'
import { withCallTimeout, withTimeLimit, TemporalUnavailableError, checkRefusedStarts } from './calls.ts'
import { createNamespaceGuard, type NamespaceGuardOptions } from './namespace.ts'
import { NO_LOAD, type WorkerLoad, type Workers } from './worker.ts'

/** What a connection shows Temporal, and what it trusts. */
export type TemporalCredentials = Pick<NativeConnectionOptions, 'tls' | 'apiKey'>

/** Connects this process to Temporal: one connection for the client and, if there is one, the worker. */
export type TemporalService = {
  /** Connects in the background. `work` is null in a process without a worker. */
  start(work: TemporalWork | null): void
  /** Throws TemporalUnavailableError while there is no connection, or the namespace is incomplete. */
  client(): Client
  /** Calls Temporal; returns false after HEALTH_TIMEOUT_MS. */
  isUp(): Promise<boolean>
  /** True when Temporal answered the last check and the namespace was complete. */
  isServing(): boolean
  /** Returns null in a process without a worker. */
  workerLoad(): WorkerLoad | null
  /** Takes no more tasks, and returns when the attempts in flight have ended. */
  stopWorking(): Promise<void>
  /** Stops the workers like `stopWorking`, and closes the connection. */
  stop(): Promise<void>
}

export type TemporalServiceOptions = {
  address: string
  namespace: string
  /** Called for each new connection: certificates are replaced while the process runs. */
  readCredentials: () => TemporalCredentials
  logger: Logger
}

/** What a process with a worker does once Temporal is connected. */
export type TemporalWork = Pick<NamespaceGuardOptions, 'onDataLost'> & {
  /** Called again when a worker ends by itself. */
  createWorkers: (connection: NativeConnection) => Promise<Workers>
  /** Sets up schedules. Repeated after an error. */
  onConnected: NamespaceGuardOptions['onComplete']
}

const RECONNECT_DELAY_MS = 1_000

/** Interval of the checks that Temporal answers and has the same namespace. */
const CHECK_INTERVAL_MS = 3_000

/** A connection that is silent or refused is replaced after this time if a new one works; gRPC takes 45 seconds. */
const SILENCE_TIMEOUT_MS = 6_000

const CONNECT_TIMEOUT_MS = 5_000

/** In development the workflows are bundled first. */
const CREATE_WORKERS_TIMEOUT_MS = 60_000

/** Smallest interval of checks after refused starts. */
const RECHECK_INTERVAL_MS = 1_000

const LOG_INTERVAL_MS = 30_000

const HEALTH_TIMEOUT_MS = 1_000

/** `served` settles when the workers have ended. */
type Link = {
  connection: NativeConnection
  client: Client
  workers: Workers | null
  served: Promise<void>
}

/**
 * Builds the service. It connects in the background and reconnects: publishing is accepted while Temporal is unavailable.
 * Sharing the connection lets workflows start eagerly.
 */
export function createTemporalService(options: TemporalServiceOptions): TemporalService {
  const { address, namespace, readCredentials, logger } = options
  const stopping = new AbortController()
  let work: TemporalWork | null = null
  const guard = createNamespaceGuard({
    namespace,
    logger,
    onComplete: async (client, isNew) => work?.onConnected(client, isNew),
    onDataLost: async () => work?.onDataLost(),
  })
  const logUnavailable = createUnavailableLog(logger, address)
  // Replaced connections whose workers have not ended yet.
  const retiring = new Set<Promise<void>>()
  let link: Link | null = null
  let isAnswering = false
  let answeredAtMs = -Infinity
  let rechecking: Promise<boolean> | null = null

  async function stayConnected(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        if (link === null) use(await connect())
        else await checkOrReplace(link)
        isAnswering = true
        answeredAtMs = performance.now()
      } catch (error) {
        logUnavailable(error, isAnswering)
        isAnswering = false
      }
      await pause(isAnswering ? CHECK_INTERVAL_MS : RECONNECT_DELAY_MS)
    }
  }

  /** Opens a connection, and checks the namespace on it. */
  async function connect(): Promise<Link> {
    const limits = { what: 'connecting', timeoutMs: CONNECT_TIMEOUT_MS, signal: stopping.signal }
    const connecting = NativeConnection.connect({ address, ...readCredentials() })
    const connection = await withTimeLimit(connecting, limits, (late) => late.close())
    const interceptors = { workflow: [checkRefusedStarts(isIncomplete)] }
    const temporal = new Client({ connection, namespace, interceptors })
    try {
      await guard.check({ connection, client: temporal })
    } catch (error) {
      await connection.close()
      throw error
    }
    return { connection, client: temporal, workers: null, served: Promise.resolve() }
  }

  function use(made: Link): void {
    link = made
    if (work === null) logger.info({ event: 'temporal.connected', address, namespace })
    else made.served = serve(made, work)
  }

  /** Runs the workers of a connection until it is replaced or the process stops. */
  async function serve(made: Link, { createWorkers }: TemporalWork): Promise<void> {
    const isOver = (): boolean => stopping.signal.aborted || link !== made
    while (!isOver()) {
      try {
        const { signal } = stopping
        const limits = { what: 'creating the workers', timeoutMs: CREATE_WORKERS_TIMEOUT_MS, signal }
        made.workers = await withTimeLimit(createWorkers(made.connection), limits, (late) => late.discard())
        logger.info({ event: 'temporal.connected', address, namespace })
        const ended = made.workers.run()
        if (isOver()) made.workers.shutdown()
        await ended
      } catch (error) {
        logUnavailable(error, true)
      }
      made.workers = null
      await pause(RECONNECT_DELAY_MS)
    }
  }

  async function checkOrReplace(current: Link): Promise<void> {
    try {
      await guard.check(current)
    } catch (error) {
      if (performance.now() - answeredAtMs < SILENCE_TIMEOUT_MS) throw error
      await replace(current)
    }
  }

  /** Throws when a new connection fails too: then the current one is used again when Temporal is back. */
  async function replace(current: Link): Promise<void> {
    const made = await connect()
    logger.warn({ event: 'temporal.connection_replaced', address })
    use(made)
    const retired = retire(current).finally(() => retiring.delete(retired))
    retiring.add(retired)
  }

  async function retire({ connection, workers, served }: Link): Promise<void> {
    workers?.shutdown()
    await served
    // Workers that were cut off may still use the connection; it closes with the process.
    await connection.close().catch(() => undefined)
  }

  /** Checks the namespace after a refused start; returns true when something was missing. */
  function isIncomplete(): Promise<boolean> {
    const current = link
    if (current === null) return Promise.resolve(true)
    rechecking ??= guard
      .check(current, true)
      .then(
        () => guard.isRegistrationRecent(),
        () => true,
      )
      .finally(() => setTimeout(() => (rechecking = null), RECHECK_INTERVAL_MS).unref())
    return rechecking
  }

  const pause = (forMs: number): Promise<unknown> =>
    delay(forMs, undefined, { signal: stopping.signal }).catch(() => undefined)

  let connecting: Promise<void> = Promise.resolve()

  async function stopWorking(): Promise<void> {
    stopping.abort()
    link?.workers?.shutdown()
    await connecting
    await link?.served
  }

  return {
    start(given) {
      work = given
      connecting = stayConnected()
    },
    client() {
      if (link === null) throw new TemporalUnavailableError('Temporal has not been reached yet')
      if (!guard.isComplete()) throw new TemporalUnavailableError('the namespace is incomplete')
      return link.client
    },
    async isUp() {
      if (link === null || !guard.isComplete()) return false
      if (work !== null && link.workers === null) return false
      const { connection } = link
      const getSystemInfo = () => connection.workflowService.getSystemInfo({})
      return withCallTimeout(connection, getSystemInfo, HEALTH_TIMEOUT_MS).then(
        () => true,
        () => false,
      )
    },
    isServing: () => isAnswering && guard.isComplete(),
    workerLoad: () => (work === null ? null : (link?.workers?.load() ?? NO_LOAD)),
    stopWorking,
    async stop() {
      await stopWorking()
      await Promise.all([...retiring, ...(link === null ? [] : [retire(link)])])
    },
  }
}

/** Logs that Temporal is unavailable: when that begins (`isNew`), and in intervals while it lasts. */
function createUnavailableLog(logger: Logger, address: string): (error: unknown, isNew: boolean) => void {
  let reportedAtMs = -Infinity
  return (error, isNew) => {
    if (!isNew && performance.now() - reportedAtMs < LOG_INTERVAL_MS) return
    reportedAtMs = performance.now()
    logger.warn({ event: 'temporal.unavailable', address, err: error })
  }
}
