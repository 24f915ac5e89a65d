import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../src/free-port.ts'
import { callApi, type ApiResponse, type CallOptions } from '../api/api.ts'
import { eventually } from '../eventually.ts'
import { TEST_KEY_RING } from '../database/factories.ts'
import { testServers } from '../runner/servers.ts'

export type PosthornProcess = {
  url: string
  pid: number
  call(method: string, path: string, options?: CallOptions): Promise<ApiResponse>
  /** One scrape of its metrics, of which `env` has to ask with METRICS_PORT. */
  scrape(): Promise<Response>
  /** One answer of `/healthz` or `/readyz` on the port of its metrics. */
  probe(path: '/healthz' | '/readyz'): Promise<{ status: number; json: unknown }>
  /** Everything it logged so far. */
  log(): string
  /** kill -9: no time for anything. */
  kill(): Promise<void>
  /** SIGTERM; returns its exit code. */
  terminate(): Promise<number | null>
  /** The same, and forgets its log. */
  stop(): Promise<number | null>
}

const READY_TIMEOUT_MS = 90_000
const PROBE_TIMEOUT_MS = 30_000

/** A `posthorn` process of its own, with the environment it needs in production; ready when it logs so. */
export async function startPosthorn(options: {
  /** The `posthorn` command, this release's unless another is named. */
  program?: string
  command?: 'serve' | 'api' | 'worker' | 'relay'
  databaseUrl: string
  temporalAddress: string
  taskQueue: string
  env?: Record<string, string>
  /** False for a process whose temporal is away. */
  awaitEngine?: boolean
}): Promise<PosthornProcess> {
  const { command = 'serve', databaseUrl, temporalAddress, taskQueue, env = {}, awaitEngine = true } = options
  const { program = testServers().posthorn } = options
  const folder = await mkdtemp(join(tmpdir(), 'posthorn-process-'))
  const logFile = join(folder, 'log')
  const port = env['PORT'] ?? String(await freePort())
  const child = spawn(process.execPath, [program, command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: temporalAddress,
      TEMPORAL_TASK_QUEUE: taskQueue,
      PORT: port,
      POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING,
      POSTHORN_ALLOW_HTTP: 'true',
      POSTHORN_ALLOWED_CIDRS: '127.0.0.0/8',
      ...env,
    },
  })
  // A test that fails may leave it behind, at work.
  const killWithUs = (): void => void child.kill('SIGKILL')
  process.once('exit', killWithUs)
  child.once('exit', () => process.off('exit', killWithUs))
  const log = createWriteStream(logFile)
  // Both write to it, so that the first to end must not end it.
  child.stdout.pipe(log, { end: false })
  child.stderr.pipe(log, { end: false })
  child.once('close', () => log.end())
  const url = `http://127.0.0.1:${port}`
  const readLog = (): string => readFileSync(logFile, 'utf8')
  const isRelay = command === 'relay'
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  await eventually(async () => {
    if (hasEnded()) return
    if (isRelay && !readLog().includes('relay.started')) throw new Error('the relay has not started')
    if (awaitEngine && !isRelay && !readLog().includes('temporal.connected'))
      throw new Error(`posthorn ${command} has not reached Temporal`)
    if (command === 'worker' && !readLog().includes('service.started'))
      throw new Error('the worker has not started')
    if (command !== 'worker' && !isRelay && (await callApi(url, 'GET', '/healthz')).status !== 200)
      throw new Error('not listening')
  }, READY_TIMEOUT_MS).catch((error: unknown) => {
    child.kill('SIGKILL')
    throw new Error(`${String(error)}\n${readLog()}`)
  })
  if (hasEnded()) throw new Error(`posthorn ${command} ended\n${readLog()}`)
  return {
    url,
    pid: child.pid ?? 0,
    call: (method, path, callOptions) => callApi(url, method, path, callOptions),
    scrape: () => fetch(metricsUrlIn(readLog())),
    async probe(path) {
      const answer = await fetch(new URL(path, metricsUrlIn(readLog())), {
        signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
      })
      return { status: answer.status, json: await answer.json() }
    },
    log: readLog,
    async kill() {
      await end(child, 'SIGKILL')
    },
    terminate: () => end(child, 'SIGTERM'),
    async stop() {
      const code = await end(child, 'SIGTERM')
      await rm(folder, { recursive: true, force: true })
      return code
    },
  }
}

function metricsUrlIn(log: string): string {
  const [, url] = /"metricsUrl":"([^"]+)"/.exec(log) ?? []
  if (url === undefined) throw new Error('it has not said where its metrics are')
  return url
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
  return child.exitCode
}
