import { setTimeout as delay } from 'node:timers/promises'
import { Client, isGrpcServiceError } from '@temporalio/client'
import { NativeConnection } from '@temporalio/worker'
import type { Logger } from '../logger.ts'
import { EngineAwayError } from './engine-away.ts'
import { registerSearchAttributes } from './register-search-attributes.ts'
import { NO_LOAD, type WorkerLoad, type Workers } from './worker.ts'

/** This process's link to Temporal: one connection for the client and, where there is one, the worker. */
export type Engine = {
  /** Begins to connect, and returns at once. */
  start(): void
  /** Throws EngineAwayError while there has not been a connection yet. */
  client(): Client
  isUp(): Promise<boolean>
  /** Null in a process that has no worker. */
  workerLoad(): WorkerLoad | null
  /** Takes no more tasks, and returns when attempts under way have finished. */
  stopWorking(): Promise<void>
  /** The same, and then closes the connection. */
  stop(): Promise<void>
}

export type EngineOptions = {
  address: string
  namespace: string
  tls: boolean
  apiKey: string
  logger: Logger
  /** Makes the workers of a process that has some; called again should one end by itself. */
  createWorkers: ((connection: NativeConnection) => Promise<Workers>) | null
  /** What is to be set up in the engine once it is reached. Nothing waits for it; a failure is tried again. */
  onConnected: ((client: Client) => Promise<void>) | null
}

const RECONNECT_AFTER_MS = 1_000

const SET_UP_AGAIN_AFTER_MS = 60_000

/** `isUp` says no after that. */
const HEALTH_TIMEOUT_MS = 1_000

/**
 * Connects in the background and goes on trying: publishing is accepted while the engine is away, so nothing at
 * start waits for it. Sharing the connection lets workflows start eagerly.
 */
export function createEngine(options: EngineOptions): Engine {
  const { address, namespace, tls, apiKey, logger, createWorkers, onConnected } = options
  const stopping = new AbortController()
  let connection: NativeConnection | null = null
  let client: Client | null = null
  let workers: Workers | null = null
  let settingUp: Promise<void> | null = null

  async function connect(): Promise<NativeConnection> {
    const made = await NativeConnection.connect({
      address,
      ...(apiKey === '' ? { tls } : { tls: true, apiKey }),
    })
    try {
      await registerSearchAttributes(made, namespace)
    } catch (error) {
      // Whoever may not register them relies on somebody who did; any other failure would make every start fail.
      if (!isRefused(error)) {
        await made.close()
        throw error
      }
      logger.warn({ event: 'engine.search_attributes', err: error }, 'engine.search_attributes')
    }
    return made
  }

  async function keepGoing(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        connection ??= await connect()
        workers = createWorkers === null ? null : await createWorkers(connection)
        client ??= new Client({ connection, namespace })
        logger.info({ event: 'engine.connected', address, namespace }, 'engine.connected')
        settingUp ??= setUp(client)
        if (workers === null) return
        const served = workers.run()
        // Told to stop while the workers were being made: they have to run for a moment to let go of the connection.
        if (isAborted(stopping.signal)) workers.shutdown()
        await served
      } catch (error) {
        logger.warn({ event: 'engine.away', address, err: error }, 'engine.away')
      }
      workers = null
      await delay(RECONNECT_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  async function setUp(reached: Client): Promise<void> {
    while (onConnected !== null && !stopping.signal.aborted) {
      try {
        await onConnected(reached)
        return
      } catch (error) {
        logger.warn({ event: 'engine.set_up', err: error }, 'engine.set_up')
      }
      await delay(SET_UP_AGAIN_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  let running: Promise<void> = Promise.resolve()

  async function stopWorking(): Promise<void> {
    stopping.abort()
    workers?.shutdown()
    await running
  }

  return {
    start() {
      running = keepGoing()
    },
    client() {
      if (client === null) throw new EngineAwayError('the engine has not been reached yet')
      return client
    },
    async isUp() {
      const reached = connection
      if (reached === null || client === null) return false
      return reached
        .withDeadline(Date.now() + HEALTH_TIMEOUT_MS, () => reached.workflowService.getSystemInfo({}))
        .then(
          () => true,
          () => false,
        )
    },
    workerLoad: () => (createWorkers === null ? null : (workers?.load() ?? NO_LOAD)),
    stopWorking,
    async stop() {
      await stopWorking()
      await settingUp
      await connection?.close()
    },
  }
}

/** PERMISSION_DENIED and UNIMPLEMENTED of gRPC. */
const REFUSALS: readonly unknown[] = [7, 12]

function isRefused(error: unknown): boolean {
  return isGrpcServiceError(error) && REFUSALS.includes(error.code)
}

/** Read anew each time: the signal changes while a worker is being made. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
