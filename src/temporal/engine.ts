import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@temporalio/client'
import { NativeConnection, type Worker } from '@temporalio/worker'
import type { Logger } from '../logger.ts'
import { registerSearchAttributes } from './register-search-attributes.ts'

/** This process's link to Temporal: one connection for the client and, where there is one, the worker. */
export type Engine = {
  /** Throws while there has not been a connection yet. */
  client(): Client
  isUp(): Promise<boolean>
  /** Lets attempts under way finish, then closes the connection. */
  stop(): Promise<void>
}

export type EngineOptions = {
  address: string
  namespace: string
  tls: boolean
  apiKey: string
  logger: Logger
  /** Makes the worker of a process that has one; called again should a worker end by itself. */
  createWorker: ((connection: NativeConnection) => Promise<Worker>) | null
}

const RECONNECT_AFTER_MS = 1_000

/** `isUp` says no after that. */
const HEALTH_TIMEOUT_MS = 1_000

/**
 * Connects in the background and goes on trying: publishing is accepted while the engine is away, so nothing at
 * start waits for it. Sharing the connection lets workflows start eagerly.
 */
export function createEngine(options: EngineOptions): Engine {
  const { address, namespace, tls, apiKey, logger, createWorker } = options
  const stopping = new AbortController()
  let connection: NativeConnection | null = null
  let client: Client | null = null
  let worker: Worker | null = null

  async function connect(): Promise<NativeConnection> {
    const made = await NativeConnection.connect({
      address,
      ...(apiKey === '' ? { tls } : { tls: true, apiKey }),
    })
    await registerSearchAttributes(made, namespace).catch((error: unknown) =>
      logger.warn({ event: 'engine.search_attributes', err: error }, 'engine.search_attributes'),
    )
    return made
  }

  async function keepGoing(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        connection ??= await connect()
        worker = createWorker === null ? null : await createWorker(connection)
        client ??= new Client({ connection, namespace })
        logger.info({ event: 'engine.connected', address, namespace }, 'engine.connected')
        if (worker === null) return
        if (!isAborted(stopping.signal)) await worker.run()
      } catch (error) {
        logger.warn({ event: 'engine.away', address, err: error }, 'engine.away')
      }
      worker = null
      await delay(RECONNECT_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }

  const running = keepGoing()

  return {
    client() {
      if (client === null) throw new Error('the engine has not been reached yet')
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
    async stop() {
      stopping.abort()
      if (worker?.getState() === 'RUNNING') worker.shutdown()
      await running
      await connection?.close()
    },
  }
}

/** Read anew each time: the signal changes while a worker is being made. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted
}
