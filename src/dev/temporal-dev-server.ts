import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Connection } from '@temporalio/client'
import { assertPortFree, freePort } from '../free-port.ts'
import { SEARCH_ATTRIBUTE_NAMES } from '../temporal/namespace.ts'
import { startGuardedProcess, type RunTool, runTool } from './guarded-process.ts'
import {
  buildWithGo,
  findOnPath,
  foundInCache,
  namedByEnvironment,
  provision,
  type Way,
  downloadedBySdk,
  sdkDownloadPath,
} from './provision.ts'

/** The inputs of the search for a program. */
export type ProvideOptions = {
  env: NodeJS.ProcessEnv
  /** Survives restarts; see `defaultCacheDir`. */
  cacheDir: string
  print: (line: string) => void
  /** Replaced in tests. */
  run?: RunTool
}

// The newest that `go install` can build: later versions carry a `replace` in their go.mod.
const CLI_VERSION = '1.5.1'
const QUICK_TIMEOUT_MS = 20_000
// Cold, two cores: about three minutes.
const BUILD_TIMEOUT_MS = 1_200_000

/**
 * Path of the `temporal` executable: the one set by `TEMPORAL_CLI`, one on PATH, one from the cache, the SDK's
 * download, or one built with Go.
 *
 * @throws Error naming every way tried and every way out
 */
export async function provideTemporalCli(options: ProvideOptions): Promise<string> {
  const { env, cacheDir, print, run = runTool } = options
  const cached = [join(cliFolder(cacheDir), 'temporal'), sdkDownloadPath('cli', cacheDir)]
  return provision({
    what: 'the Temporal server (the `temporal` executable)',
    ways: [
      namedByEnvironment('TEMPORAL_CLI', env),
      foundOnPath(env, run),
      foundInCache(cached),
      downloadedBySdk('cli', { cacheDir, print, run }),
      builtWithGo({ env, cacheDir, print, run }),
    ],
    waysOut: [
      'set TEMPORAL_CLI=/path/to/temporal',
      'set TEMPORAL_ADDRESS=host:port of a Temporal server that runs already',
      'put `temporal` (the Temporal CLI) on PATH',
      'install Go 1.21 or newer; it is then built here',
    ],
  })
}

/** The Temporal CLI that serves; its version as it gives it, such as `1.5.1 (Server 1.29.1, UI 2.42.1)`. */
export type TemporalCli = { path: string; version: string }

export async function readTemporalCliVersion(path: string, env: NodeJS.ProcessEnv): Promise<string> {
  const printed = await runTool({ command: path, args: ['--version'], env, timeoutMs: QUICK_TIMEOUT_MS })
  return printed.trim().replace(/^temporal version /, '')
}

function foundOnPath(env: NodeJS.ProcessEnv, run: RunTool): Way {
  return {
    name: '`temporal` on PATH',
    attempt: async () => {
      const path = findOnPath('temporal', env)
      if (path === null) return { why: 'not found' }
      // Other programs may bear the name.
      const version = await run({ command: path, args: ['--version'], env, timeoutMs: QUICK_TIMEOUT_MS })
      return version.includes('temporal version') ? { path } : { why: `${path} is another program` }
    },
  }
}

function builtWithGo({ cacheDir, ...surroundings }: Required<ProvideOptions>): Way {
  return {
    name: `go install (Temporal CLI ${CLI_VERSION})`,
    attempt: () =>
      buildWithGo({
        what: `the Temporal server ${CLI_VERSION}`,
        takes: 'about three minutes',
        folder: cliFolder(cacheDir),
        executable: 'temporal',
        args: [`github.com/temporalio/cli/cmd/temporal@v${CLI_VERSION}`],
        timeoutMs: BUILD_TIMEOUT_MS,
        ...surroundings,
      }),
  }
}

function cliFolder(cacheDir: string): string {
  return join(cacheDir, `temporal-cli-${CLI_VERSION}`)
}

/** Which executable serves, where it keeps its state and which ports it takes. */
export type TemporalDevServerOptions = {
  /** See `provideTemporalCli`. */
  executable: string
  /** SQLite file with all of Temporal's state; created when missing. */
  dbFile: string
  /** Of gRPC; a free one when not given. */
  port?: number
  /** Of the web UI; a free one when not given. */
  uiPort?: number
  logFile: string
  print: (line: string) => void
  /** Without the web UI. */
  headless?: boolean
  /** False for a server that does not know our search attributes yet, as an empty one; true if not given. */
  searchAttributes?: boolean
}

/** A Temporal server of our own on 127.0.0.1, with the namespace `default`. */
export type TemporalDevServer = {
  /** host:port of gRPC. */
  address: string
  pid: number
  uiUrl: string | null
  stop(): Promise<void>
  /** Settles when the server is gone, for whatever reason. */
  exited: Promise<unknown>
}

const LOOPBACK = '127.0.0.1'
const NAMESPACE = 'default'
const READY_TIMEOUT_MS = 60_000
const CONNECT_TIMEOUT_MS = 1_000
// It usually stops within a second; its state is safe at every moment, so it need not be waited for long.
const KILL_AFTER_MS = 4_000

const dynamicConfig = {
  'system.enableActivityEagerExecution': 'true',
  // One webhook's backlog must not starve the others'.
  'matching.enableFairness': 'true',
  // Newer servers have them on: `posthorn doctor` counts the workers by their heartbeats.
  'frontend.WorkerHeartbeatsEnabled': 'true',
  'frontend.ListWorkersEnabled': 'true',
}

// A commit need not wait for the disk: a power cut may cost the last moments, a crash of the server nothing.
const sqlitePragmas = { journal_mode: 'wal', synchronous: '1' }

/**
 * Starts Temporal's development server and waits until it serves. It ends with this process, however that happens.
 *
 * @throws Error when a given port is taken, or with the server's log when it does not come up
 */
export async function startTemporalDevServer(options: TemporalDevServerOptions): Promise<TemporalDevServer> {
  const { executable, dbFile, logFile, print, headless = false, searchAttributes = true } = options
  // Checked first: another server that answers on the port would pass for ours.
  if (options.port !== undefined) await assertPortFree(options.port, 'Temporal', 'TEMPORAL_PORT')
  if (options.uiPort !== undefined && !headless) {
    await assertPortFree(options.uiPort, 'Temporal UI', 'TEMPORAL_UI_PORT')
  }
  const port = options.port ?? (await freePort())
  const uiPort = options.uiPort ?? (await freePort())
  const address = `${LOOPBACK}:${port}`
  mkdirSync(dirname(dbFile), { recursive: true })

  print('Starting the Temporal server …')
  const server = await startGuardedProcess({
    name: 'The Temporal server',
    command: executable,
    args: [
      ...['server', 'start-dev', '--log-level', 'warn', '--ip', LOOPBACK, '--port', String(port)],
      ...['--http-port', String(await freePort()), '--metrics-port', String(await freePort())],
      ...(headless ? ['--headless'] : ['--ui-ip', LOOPBACK, '--ui-port', String(uiPort)]),
      ...['--db-filename', dbFile],
      ...(searchAttributes
        ? SEARCH_ATTRIBUTE_NAMES.flatMap((name) => ['--search-attribute', `${name}=Keyword`])
        : []),
      ...pairs('--dynamic-config-value', dynamicConfig),
      ...pairs('--sqlite-pragma', sqlitePragmas),
    ],
    stopSignal: 'SIGTERM',
    killAfterMs: KILL_AFTER_MS,
    logFile,
    isReady: () => isServing(address, searchAttributes),
    readyTimeoutMs: READY_TIMEOUT_MS,
  })
  return {
    address,
    pid: server.pid,
    uiUrl: headless ? null : `http://${LOOPBACK}:${uiPort}`,
    stop: () => server.stop(),
    exited: server.exited,
  }
}

async function isServing(address: string, searchAttributes: boolean): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: CONNECT_TIMEOUT_MS })
  try {
    await connection.workflowService.describeNamespace({ namespace: NAMESPACE })
    if (!searchAttributes) return true
    const { customAttributes } = await connection.operatorService.listSearchAttributes({
      namespace: NAMESPACE,
    })
    return SEARCH_ATTRIBUTE_NAMES.every((name) => name in customAttributes)
  } finally {
    await connection.close()
  }
}

function pairs(flag: string, values: Record<string, string>): string[] {
  return Object.entries(values).flatMap(([key, value]) => [flag, `${key}=${value}`])
}
