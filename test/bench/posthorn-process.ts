import { startGuardedProcess } from '../../src/dev/guarded-process.ts'
import { freePort } from '../../src/free-port.ts'

export type PosthornProcess = {
  url: string
  pid: number
  /** kill -9 after a moment: attempts that hang need not be waited for. */
  stop(): Promise<void>
}

const KEY_RING = `bench:${'ab'.repeat(32)}`
const READY_TIMEOUT_MS = 60_000
const KILL_AFTER_MS = 1_000

/**
 * `posthorn serve`, which is API and worker, with the settings of production but for receivers on this machine.
 * Its log goes straight to a file.
 */
export async function startPosthorn(options: {
  /** File of the `posthorn` command. */
  bin: string
  databaseUrl: string
  temporalAddress: string
  logFile: string
  env: Record<string, string>
}): Promise<PosthornProcess> {
  const url = `http://127.0.0.1:${await freePort()}`
  const env = {
    PATH: process.env['PATH'],
    DATABASE_URL: options.databaseUrl,
    TEMPORAL_ADDRESS: options.temporalAddress,
    PORT: new URL(url).port,
    POSTHORN_ENCRYPTION_KEYS: KEY_RING,
    POSTHORN_ALLOW_HTTP: 'true',
    POSTHORN_ALLOWED_CIDRS: '127.0.0.0/8,::1/128',
    ...options.env,
  }
  const server = await startGuardedProcess({
    name: 'Posthorn',
    command: process.execPath,
    args: [options.bin, 'serve'],
    env,
    stopSignal: 'SIGTERM',
    killAfterMs: KILL_AFTER_MS,
    logFile: options.logFile,
    isReady: async (log) => log.includes('temporal.connected') && (await fetch(`${url}/readyz`)).ok,
    readyTimeoutMs: READY_TIMEOUT_MS,
  })
  return { url, pid: server.pid, stop: () => server.stop() }
}
