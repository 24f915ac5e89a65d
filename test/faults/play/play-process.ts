import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startPosthorn, type PosthornProcess } from '../../helpers/processes/posthorn.ts'
import { createDatabaseProxy } from '../rig/tcp-proxy.ts'
import { createFakeClock, type FakeClock } from '../rig/fake-clock.ts'
import { createTcpProxy, type TcpProxy } from '../rig/tcp-proxy.ts'
import { nowMs } from './clock.ts'
import type { PlayedProcess } from './record.ts'

/** A Posthorn process of a play, behind proxies and with an address of its own, that is killed and started again. */
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
  /** `SIGKILL`: at once; `SIGTERM`: it finishes what it does. Returns when it has ended. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  /** Nothing where it does not run. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Ends it cleanly, and returns how it ended. May be called again. */
  finish(): Promise<PlayedProcess>
}

const START_AGAIN_MS = 500
const OBSERVE_EVERY_MS = 500
const START_LIMIT_MS = 150_000

const SEND_FROM = fileURLToPath(new URL('../rig/send-from.mjs', import.meta.url))

/** Log events of faults of Posthorn, and Node.js's own words for errors that nothing handled. */
const UNEXPECTED =
  /"event":"(http\.failed|metrics\.scrape_failed|stream\.failed|process\.(uncaught|unhandled)_\w+)"|^(?!\{).*(unhandled|uncaught)/i

/** A request that fails by an injected error of PostgreSQL's own is answered 500. */
const isAnswered = (line: string): boolean =>
  line.includes('"event":"http.failed"') && line.includes('"message":"injected fault","code":"XX000"')

export async function createPlayProcess(options: {
  name: string
  command: 'api' | 'worker'
  program: string | undefined
  databaseUrl: string
  temporalAddress: string
  taskQueue: string
  env: Record<string, string>
  /** Where its connections to receivers come from, and the ports of these. */
  address: string
  receivers: readonly number[]
  /** Whether its wall clock is to be stepped. */
  hasClock: boolean
}): Promise<PlayProcess> {
  const { name, command, program, taskQueue } = options
  const [host = '', port] = options.temporalAddress.split(':')
  const database = await createDatabaseProxy(options.databaseUrl)
  const temporal = await createTcpProxy({ host, port: Number(port) })
  const clock = options.hasClock ? createFakeClock(0) : null
  const env = {
    ...options.env,
    ...clock?.env,
    NODE_OPTIONS: `--import ${SEND_FROM}`,
    POSTHORN_TEST_ADDRESS: options.address,
    POSTHORN_TEST_RECEIVERS: options.receivers.join(','),
  }
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
          ...(program === undefined ? {} : { program }),
          command,
          databaseUrl: database.url,
          temporalAddress: `127.0.0.1:${temporal.port}`,
          taskQueue,
          env,
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

  async function end(signalled: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const ended = running
    running = null
    if (ended === null) return
    if (signalled === 'SIGKILL') await ended.kill()
    else await ended.terminate()
    logs.push(ended.log())
  }

  async function finish(): Promise<PlayedProcess> {
    clearInterval(observer)
    signal('SIGCONT')
    await end('SIGTERM')
    await Promise.all([database.close(), temporal.close()])
    clock?.remove()
    const log = logs.join('')
    const faults = log.split('\n').filter((line) => UNEXPECTED.test(line) && !isAnswered(line))
    return { name, log, faults, endedByItself, peakMemoryMb }
  }

  return {
    name,
    database,
    temporal,
    clock,
    apiUrl: () => (command === 'worker' ? null : (running?.url ?? null)),
    start,
    end,
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
