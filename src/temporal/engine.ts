import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@temporalio/client'
import { NativeConnection } from '@temporalio/worker'
import type { Logger } from '../logger.ts'
import { EngineAwayError, isEngineAway } from './engine-away.ts'
import { createNamespaceGuard, type NamespaceGuardOptions } from './namespace-guard.ts'
import { checkRefusedStarts } from './refused-starts.ts'
import { withTimeLimit } from './time-limit.ts'
import { NO_LOAD, type WorkerLoad, type Workers } from './worker.ts'

/** This process's link to Temporal: one connection for the client and, where there is one, the worker. */
export type Engine = {
  /** Begins to connect, and returns at once. */
  start(): void
  /** Throws EngineAwayError while there is no connection, or the namespace lacks what a start needs. */
  client(): Client
  /** Asks Temporal, within a second. */
  isUp(): Promise<boolean>
  /** What was known a moment ago: Temporal answers, and the namespace has what a start needs. */
  isServing(): boolean
  /** Null in a process that has no worker. */
  workerLoad(): WorkerLoad | null
  /** Takes no more tasks, and returns when attempts under way have finished. */
  stopWorking(): Promise<void>
  /** The same, and then closes the connection. */
  stop(): Promise<void>
}

export type EngineOptions = Omit<NamespaceGuardOptions, 'onComplete'> & {
  address: string
  tls: boolean
  apiKey: string
  logger: Logger
  /** Makes the workers of a process that has some; called again should one end by itself. */
  createWorkers: ((connection: NativeConnection) => Promise<Workers>) | null
  /** What is to be set up in the engine once it is reached. Nothing waits for it; a failure is tried again. */
  onConnected: NamespaceGuardOptions['onComplete']
}

const RECONNECT_AFTER_MS = 1_000

/** How often Temporal is asked whether it is there, and still the one that it was. */
const CHECK_INTERVAL_MS = 3_000

/** A connection over which nothing came for so long is replaced where a new one works; gRPC notices after 45 seconds. */
const SILENT_AFTER_MS = 6_000

const CONNECT_TIMEOUT_MS = 5_000

/** Workers are made from sources in development, which takes its time. */
const CREATE_WORKERS_TIMEOUT_MS = 60_000

/** Refused starts have the namespace checked no more often than that. */
const RECHECK_INTERVAL_MS = 1_000

const AWAY_REPORT_INTERVAL_MS = 30_000

/** `isUp` says no after that. */
const HEALTH_TIMEOUT_MS = 1_000

/** `served` settles when its workers have ended for good. */
type Link = {
  connection: NativeConnection
  client: Client
  workers: Workers | null
  served: Promise<void>
}

/**
 * Connects in the background and goes on trying: publishing is accepted while the engine is away, so nothing at
 * start waits for it. Sharing the connection lets workflows start eagerly.
 */
export function createEngine(options: EngineOptions): Engine {
  const { address, namespace, tls, apiKey, logger, createWorkers, onConnected } = options
  const stopping = new AbortController()
  const guard = createNamespaceGuard({ ...options, onComplete: onConnected })
  const reportAway = createAwayReport(logger, address)
  // Replaced connections whose workers have not ended yet.
  const retiring = new Set<Promise<void>>()
  let link: Link | null = null
  let isAnswering = false
  let answeredAtMs = -Infinity
  let rechecking: Promise<boolean> | null = null

  async function keepConnected(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        if (link === null) use(await connect())
        else await checkOrReplace(link)
        isAnswering = true
        answeredAtMs = performance.now()
      } catch (error) {
        reportAway(error, isAnswering)
        isAnswering = false
      }
      await pause(isAnswering ? CHECK_INTERVAL_MS : RECONNECT_AFTER_MS)
    }
  }

  /** A connection of which Temporal has answered that the namespace has what we need. */
  async function connect(): Promise<Link> {
    const limits = { what: 'connecting', timeoutMs: CONNECT_TIMEOUT_MS, signal: stopping.signal }
    const credentials = apiKey === '' ? { tls } : { tls: true, apiKey }
    const connecting = NativeConnection.connect({ address, ...credentials })
    const connection = await withTimeLimit(connecting, limits, (late) => late.close())
    const interceptors = { workflow: [checkRefusedStarts(isLacking)] }
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
    if (createWorkers === null)
      logger.info({ event: 'engine.connected', address, namespace }, 'engine.connected')
    else made.served = serve(made, createWorkers)
  }

  /** Runs the workers of a connection until it is replaced or this process ends. */
  async function serve(made: Link, create: NonNullable<typeof createWorkers>): Promise<void> {
    const isOver = (): boolean => stopping.signal.aborted || link !== made
    while (!isOver()) {
      try {
        const { signal } = stopping
        const limits = { what: 'creating the workers', timeoutMs: CREATE_WORKERS_TIMEOUT_MS, signal }
        made.workers = await withTimeLimit(create(made.connection), limits, (late) => late.discard())
        logger.info({ event: 'engine.connected', address, namespace }, 'engine.connected')
        const ended = made.workers.run()
        if (isOver()) made.workers.shutdown()
        await ended
      } catch (error) {
        reportAway(error, true)
      }
      made.workers = null
      await pause(RECONNECT_AFTER_MS)
    }
  }

  async function checkOrReplace(current: Link): Promise<void> {
    try {
      await guard.check(current)
    } catch (error) {
      if (!isEngineAway(error) || performance.now() - answeredAtMs < SILENT_AFTER_MS) throw error
      await replace(current)
    }
  }

  /** Throws when a new connection is no better: then Temporal is away, and this one serves as soon as it is back. */
  async function replace(current: Link): Promise<void> {
    const made = await connect()
    logger.warn({ event: 'temporal.connection_replaced', address }, 'temporal.connection_replaced')
    use(made)
    const retired = retire(current).finally(() => retiring.delete(retired))
    retiring.add(retired)
  }

  async function retire({ connection, workers, served }: Link): Promise<void> {
    workers?.shutdown()
    await served
    // Workers that had to be cut off may hold it still; it closes with the process.
    await connection.close().catch(() => undefined)
  }

  /** After Temporal refused a start: whether the namespace lacked something, which is set up by now or soon. */
  function isLacking(): Promise<boolean> {
    const current = link
    if (current === null) return Promise.resolve(true)
    rechecking ??= guard
      .check(current, true)
      .then(
        () => guard.wasCompletedLately(),
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
    start() {
      connecting = keepConnected()
    },
    client() {
      if (link === null) throw new EngineAwayError('the engine has not been reached yet')
      if (!guard.isComplete()) throw new EngineAwayError('the namespace lacks what a start needs')
      return link.client
    },
    async isUp() {
      if (link === null || !guard.isComplete()) return false
      if (createWorkers !== null && link.workers === null) return false
      const { connection } = link
      return connection
        .withDeadline(Date.now() + HEALTH_TIMEOUT_MS, () => connection.workflowService.getSystemInfo({}))
        .then(
          () => true,
          () => false,
        )
    },
    isServing: () => isAnswering && guard.isComplete(),
    workerLoad: () => (createWorkers === null ? null : (link?.workers?.load() ?? NO_LOAD)),
    stopWorking,
    async stop() {
      await stopWorking()
      await Promise.all([...retiring, ...(link === null ? [] : [retire(link)])])
    },
  }
}

/** Says that Temporal is away when that begins, and from time to time while it lasts. */
function createAwayReport(logger: Logger, address: string): (error: unknown, isNews: boolean) => void {
  let reportedAtMs = -Infinity
  return (error, isNews) => {
    if (!isNews && performance.now() - reportedAtMs < AWAY_REPORT_INTERVAL_MS) return
    reportedAtMs = performance.now()
    logger.warn({ event: 'engine.away', address, err: error }, 'engine.away')
  }
}
