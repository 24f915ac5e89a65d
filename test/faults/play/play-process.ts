import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { startPosthorn, type PosthornProcess } from '../../helpers/processes/posthorn.ts'
import { createDatabaseProxy } from '../rig/database-proxy.ts'
import { createFakeClock, type FakeClock } from '../rig/fake-clock.ts'
import { createTcpProxy, type TcpProxy } from '../rig/tcp-proxy.ts'
import { nowMs } from './clock.ts'
import type { PlayedProcess } from './record.ts'

/** A Posthorn process of a play, behind proxies of its own, that is killed and started again. */
export type PlayProcess = {
  name: string
  database: TcpProxy
  temporal: TcpProxy
  /** Its wall clock; null where that cannot be stepped. */
  clock: FakeClock | null
  /** URL of its API; null for a worker, and while it does not run. */
  apiUrl(): string | null
  /** Starts it, again and again until it runs: a process ends at once while its database is away. */
  start(): Promise<void>
  /** kill -9. */
  kill(): Promise<void>
  /** SIGSTOP, or SIGCONT; nothing where it does not run. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Ends it cleanly, and returns how it ended. May be called again. */
  finish(): Promise<PlayedProcess>
}

const START_AGAIN_MS = 500
const OBSERVE_EVERY_MS = 500
const START_LIMIT_MS = 150_000

export async function createPlayProcess(options: {
  name: string
  command: 'serve' | 'api' | 'worker'
  databaseUrl: string
  temporalAddress: string
  taskQueue: string
  env: Record<string, string>
  /** Whether its wall clock is to be stepped. */
  hasClock: boolean
}): Promise<PlayProcess> {
  const { name, command, taskQueue, env } = options
  const [host = '', port] = options.temporalAddress.split(':')
  const database = await createDatabaseProxy(options.databaseUrl)
  const temporal = await createTcpProxy({ host, port: Number(port) })
  const clock = options.hasClock ? createFakeClock(0) : null
  const logs: string[] = []
  const endedByItself: number[] = []
  let running: PosthornProcess | null = null
  let peakMemoryMb = 0
  let finished: Promise<PlayedProcess> | null = null

  const observer = setInterval(() => {
    if (running === null) return
    const memoryMb = residentMemoryMb(running.pid)
    if (memoryMb === null) {
      endedByItself.push(nowMs())
      logs.push(running.log())
      running = null
      return
    }
    peakMemoryMb = Math.max(peakMemoryMb, memoryMb)
  }, OBSERVE_EVERY_MS)

  async function start(): Promise<void> {
    const deadline = nowMs() + START_LIMIT_MS
    while (running === null) {
      try {
        running = await startPosthorn({
          command,
          databaseUrl: database.url,
          temporalAddress: `127.0.0.1:${temporal.port}`,
          taskQueue,
          env: { ...env, ...clock?.env },
          awaitEngine: false,
        })
      } catch (error) {
        if (nowMs() > deadline) throw new Error(`${name} did not start again: ${String(error)}`)
        await delay(START_AGAIN_MS)
      }
    }
  }

  function signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    if (running === null) return
    try {
      process.kill(running.pid, name)
    } catch {
      // It has just ended by itself: the observer notes that.
    }
  }

  async function finish(): Promise<PlayedProcess> {
    clearInterval(observer)
    signal('SIGCONT')
    if (running !== null) {
      logs.push(running.log())
      await running.stop()
    }
    await Promise.all([database.close(), temporal.close()])
    clock?.remove()
    return { name, log: logs.join(''), endedByItself, peakMemoryMb }
  }

  return {
    name,
    database,
    temporal,
    clock,
    apiUrl: () => (command === 'worker' ? null : (running?.url ?? null)),
    start,
    async kill() {
      const killed = running
      running = null
      if (killed === null) return
      await killed.kill()
      logs.push(killed.log())
    },
    signal,
    finish: () => (finished ??= finish()),
  }
}

/** Resident memory of a process that lives; null where it ended. */
function residentMemoryMb(pid: number): number | null {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kilobytes === undefined ? null : Number(kilobytes) / 1_024
  } catch {
    return null
  }
}
