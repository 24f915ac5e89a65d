import { setImmediate as nextLoopIteration } from 'node:timers/promises'
import type { Connection } from './connection.ts'

/** Holds idle connections for the next POST of the same key. */
export type ConnectionPool = {
  /** Removes and returns a connection of `key` that is open and silent; null without one. */
  take(key: string): Promise<Connection | null>
  /** Adds a connection whose last answer was read completely, or closes it. */
  add(key: string, connection: Connection): void
  /** Closes the idle connections of `key`. */
  drop(key: string): void
  /** Closes all idle connections, and every connection that is added later. */
  close(): void
}

/** A connection has to be silent for `restMs` and that many round trips before it is used again. */
export type PoolLimits = {
  maxIdlePerKey: number
  maxIdle: number
  maxAgeMs: number
  restMs: number
  restRoundTrips: number
}

type Idle = {
  connection: Connection
  /** When it has been silent for long enough, on `performance.now()`. */
  restedAtMs: number
  bytesRead: number
  /** Removes the connection: it is in use again, or its socket has closed. */
  forget: () => void
}

const DEFAULT_LIMITS: PoolLimits = {
  maxIdlePerKey: 256,
  maxIdle: 2_048,
  // A changed DNS answer, an expired certificate or a new policy counts for every request after this.
  maxAgeMs: 60_000,
  // Surplus bytes of an endpoint follow its answer closely, unless Nagle's algorithm delays them until we have
  // acknowledged the answer. Linux does so after 40 ms or one round trip; the rest then takes another one to come.
  restMs: 50,
  restRoundTrips: 2,
}

/**
 * Builds the pool. Nothing an endpoint sends of its own accord may be read as the answer to a later POST, so a
 * connection is reused only after it has been silent since its last answer for a while, and is still silent after the
 * event loop has polled its sockets once more.
 */
export function createConnectionPool(limits: Partial<PoolLimits> = {}): ConnectionPool {
  const { maxIdlePerKey, maxIdle, maxAgeMs, restMs, restRoundTrips } = { ...DEFAULT_LIMITS, ...limits }
  // Both in the order in which they were added.
  const idle = new Set<Idle>()
  const idleByKey = new Map<string, Idle[]>()
  let isClosed = false

  // Whatever had come before this instant has been read.
  let readUntilMs = -Infinity
  let reading: Promise<void> | null = null

  async function take(key: string): Promise<Connection | null> {
    for (;;) {
      const now = performance.now()
      const idleOfKey = idleByKey.get(key) ?? []
      // The one used last, so that surplus connections grow old.
      const entry =
        idleOfKey.findLast((one) => one.restedAtMs <= readUntilMs) ??
        idleOfKey.findLast((one) => one.restedAtMs <= now)
      if (entry === undefined) return null
      entry.forget()
      // Under load the sockets have been read since then.
      reading ??= readSockets()
      while (entry.restedAtMs > readUntilMs) await (reading ??= readSockets())
      if (isStillSilent(entry)) return entry.connection
      entry.connection.destroy()
    }
  }

  /**
   * Waits until the sockets have been read. The first `setImmediate` ends the current iteration of the event loop; only
   * the second guarantees that timers have run and sockets have been polled.
   */
  async function readSockets(): Promise<void> {
    const fromMs = performance.now()
    await nextLoopIteration()
    await nextLoopIteration()
    readUntilMs = fromMs
    reading = null
  }

  function add(key: string, connection: Connection): void {
    const { socket } = connection
    const same = idleByKey.get(key) ?? []
    if (isClosed || socket.destroyed || isOld(connection) || same.length >= maxIdlePerKey) {
      connection.destroy()
      return
    }
    const [oldest] = idle
    if (oldest !== undefined && idle.size >= maxIdle) close([oldest])
    const forget = (): void => {
      idle.delete(entry)
      const at = same.indexOf(entry)
      if (at !== -1) same.splice(at, 1)
      if (same.length === 0) idleByKey.delete(key)
      socket.off('close', forget)
    }
    const restedAtMs = performance.now() + restMs + restRoundTrips * connection.roundTripMs
    const entry: Idle = { connection, restedAtMs, bytesRead: socket.bytesRead, forget }
    idle.add(entry)
    same.push(entry)
    idleByKey.set(key, same)
    socket.on('close', forget)
  }

  /** Bytes that are no beginning of an answer (an empty line) do not move undici, but they are counted. */
  function isStillSilent({ connection, bytesRead }: Idle): boolean {
    const { socket } = connection
    if (socket.destroyed || socket.readableEnded || socket.bytesRead !== bytesRead) return false
    // The endpoint answered before it read the whole request.
    if (socket.writableLength > 0) return false
    return !isClosed && !isOld(connection)
  }

  function isOld({ openedAtMs }: Connection): boolean {
    return performance.now() - openedAtMs >= maxAgeMs
  }

  function close(entries: Iterable<Idle>): void {
    for (const entry of [...entries]) {
      entry.forget()
      entry.connection.destroy()
    }
  }

  return {
    take,
    add,
    drop: (key) => close(idleByKey.get(key) ?? []),
    close() {
      isClosed = true
      close(idle)
    },
  }
}
