import { join } from 'node:path'
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
import { type RunTool, runTool } from './guarded-process.ts'

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
