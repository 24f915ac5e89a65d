import {
  accessSync,
  constants,
  statSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  chmodSync,
  readdirSync,
} from 'node:fs'
import { delimiter, join, basename, dirname, resolve } from 'node:path'
import { homedir } from 'node:os'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { runTool, withProgress, type RunTool } from './guarded-process.ts'

/** What came of one way: the path, or why there is none. `isFinal` forbids going on to the next way. */
type WayOutcome = { path: string } | { why: string; isFinal?: boolean }

/** One way of getting a program. A way that throws has failed with that message. */
export type Way = {
  /** Named when all ways have failed, such as `go install …`. */
  name: string
  attempt: () => Promise<WayOutcome>
}

/** A program that can be got in several ways, best first. */
export type Provision = {
  /** What it is, such as `the Temporal server`. */
  what: string
  ways: Way[]
  /** What a user can do when every way has failed. */
  waysOut: string[]
}

/**
 * Tries the ways in order and answers the first path.
 *
 * @throws Error naming every way tried, why it failed, and every way out
 */
export async function provision({ what, ways, waysOut }: Provision): Promise<string> {
  const failures: string[] = []
  for (const way of ways) {
    const outcome = await tryWay(way)
    if ('path' in outcome) return outcome.path
    failures.push(`  - ${way.name}: ${outcome.why}`)
    if (outcome.isFinal === true) break
  }
  const exits = waysOut.map((wayOut) => `  - ${wayOut}`)
  throw new Error(
    [`Cannot get ${what}. Tried:`, ...failures, 'What helps, any one of these:', ...exits].join('\n'),
  )
}

async function tryWay(way: Way): Promise<WayOutcome> {
  try {
    return await way.attempt()
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) }
  }
}

/** Whether the file exists and this user may run it. */
export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

/** The first program of that name on the PATH of `env`, or null. */
export function findOnPath(name: string, env: NodeJS.ProcessEnv): string | null {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null
}

/** The program that an environment variable names. A wrong name is final: the user means that program. */
export function namedByEnvironment(variable: string, env: NodeJS.ProcessEnv): Way {
  return {
    name: variable,
    attempt: async () => {
      const path = env[variable] ?? ''
      if (path === '') return Promise.resolve({ why: 'not set' })
      if (isExecutable(path)) return Promise.resolve({ path })
      return Promise.resolve({ why: `${path} is not an executable file`, isFinal: true })
    },
  }
}

/** Finds the first of these files that can be run: an earlier start has put it into the cache. */
export function foundInCache(files: string[]): Way {
  return {
    name: 'the cache',
    attempt: async () => {
      const path = files.find(isExecutable)
      return Promise.resolve(path === undefined ? { why: `${files.join(' and ')} not there` } : { path })
    },
  }
}

/** Returns the folder that caches programs between starts: `POSTHORN_CACHE`, else the user's cache folder. */
export function defaultCacheDir(env: NodeJS.ProcessEnv): string {
  const { POSTHORN_CACHE: own, XDG_CACHE_HOME: users, HOME: home } = env
  if (own !== undefined && own !== '') return resolve(own)
  if (users !== undefined && users !== '') return join(users, 'posthorn')
  return join(home ?? homedir(), '.cache', 'posthorn')
}

/**
 * Lets `build` fill a folder next to `folder`, then renames it into place, so that it is never incomplete.
 * When another process was faster, its result stands. Answers the path of `executable`.
 *
 * @throws whatever `build` throws; nothing is left behind then
 */
export async function publishFolder(
  folder: string,
  executable: string,
  build: (draftFolder: string) => Promise<void>,
): Promise<string> {
  mkdirSync(dirname(folder), { recursive: true })
  const draft = mkdtempSync(join(dirname(folder), `.${basename(folder)}-`))
  const path = join(folder, executable)
  try {
    await build(draft)
    if (!isExecutable(join(draft, executable))) throw new Error(`it left no executable ${executable}`)
    if (isExecutable(path)) return path
    // What lies there without a working executable is of no use.
    rmSync(folder, { recursive: true, force: true })
    renameSync(draft, folder)
    return path
  } catch (error) {
    if (isExecutable(path)) return path
    throw error
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

// An older Go cannot read the go.mod of what is built; from here on it fetches the Go that the module names.
const OLDEST_GO_MINOR = 21
const VERSION_TIMEOUT_MS = 20_000

export type GoBuild = {
  /** As progress names it, and how long it takes. */
  what: string
  takes: string
  /** The folder of the cache that will have the executable. */
  folder: string
  executable: string
  /** Of `go install`: flags, and the package. */
  args: string[]
  timeoutMs: number
  print: (line: string) => void
  env?: NodeJS.ProcessEnv
  run?: RunTool
  /** Returns the folder of the module to build in, which it may make in the draft folder. */
  prepare?: (draftFolder: string, runGo: (args: string[], cwd: string) => Promise<string>) => Promise<string>
}

/** Builds a program into the cache, with progress. Answers the path of its executable, or why no Go serves. */
export async function buildWithGo(build: GoBuild): ReturnType<Way['attempt']> {
  const { what, folder, executable, args, timeoutMs, print, env = process.env, run = runTool } = build
  const command = findOnPath('go', env)
  if (command === null) return { why: 'no `go` on PATH' }
  const version = await run({ command, args: ['version'], env, timeoutMs: VERSION_TIMEOUT_MS })
  const minor = Number(/go1\.(\d+)/.exec(version)?.[1] ?? OLDEST_GO_MINOR)
  if (minor < OLDEST_GO_MINOR)
    return { why: `needs Go 1.${OLDEST_GO_MINOR} or newer, found ${version.trim()}` }

  print(`Building ${what} with Go (once, ${build.takes}) …`)
  let compiled = 0
  const onLine = (line: string): void => {
    // -v prints one line per compiled package; go's own remarks are about downloads.
    if (!line.startsWith('go: ')) compiled += 1
  }
  const describe = (seconds: number): string =>
    `Building ${what}: ${compiled} packages compiled after ${seconds} s …`
  const path = await publishFolder(folder, executable, async (draft) => {
    const tool = { command, env: { ...env, GOBIN: draft }, timeoutMs }
    await withProgress(print, describe, async () => {
      const cwd = await build.prepare?.(draft, (goArgs, module) =>
        run({ ...tool, args: goArgs, cwd: module }),
      )
      await run({ ...tool, args: ['install', '-v', ...args], cwd: cwd ?? dirname(folder), onLine })
    })
  })
  return { path }
}

/** The two servers that the SDK can download. */
export type SdkServer = 'cli' | 'test-server'

const downloader = fileURLToPath(new URL('./sdk-download.mjs', import.meta.url))
const { version: sdkVersion } = createRequire(import.meta.url)('@temporalio/testing/package.json') as {
  version: string
}

// For 60 MB over a slow connection. A closed network refuses within milliseconds.
const DOWNLOAD_TIMEOUT_MS = 300_000

const executableNames = { cli: 'temporal', 'test-server': 'temporal-test-server' }

/** Returns the path of the SDK's download; each version of the SDK has its own. */
export function sdkDownloadPath(server: SdkServer, cacheDir: string): string {
  return join(folderOf(server, cacheDir), executableNames[server])
}

/** The server that the SDK downloads by itself, fetched once and cached. */
export function downloadedBySdk(
  server: SdkServer,
  { cacheDir, print, run }: { cacheDir: string; print: (line: string) => void; run: RunTool },
): Way {
  const what = server === 'cli' ? 'the Temporal server' : 'the time-skipping test server'
  return {
    name: "the Temporal SDK's download",
    attempt: async () => {
      print(`Downloading ${what} (once, about half a minute) …`)
      const executable = executableNames[server]
      const path = await publishFolder(folderOf(server, cacheDir), executable, async (draft) => {
        const args = [downloader, server, draft]
        const describe = (seconds: number): string =>
          `Downloading ${what}: ${megabytesIn(draft)} MB after ${seconds} s …`
        await withProgress(print, describe, () =>
          run({ command: process.execPath, args, timeoutMs: DOWNLOAD_TIMEOUT_MS }),
        )
        // The SDK gives the file a name with its own version in it.
        const [downloaded] = readdirSync(draft)
        if (downloaded === undefined) throw new Error('it left no file')
        renameSync(join(draft, downloaded), join(draft, executable))
        chmodSync(join(draft, executable), 0o755)
      })
      return { path }
    },
  }
}

function folderOf(server: SdkServer, cacheDir: string): string {
  return join(cacheDir, `temporal-${server}-sdk-${sdkVersion}`)
}

function megabytesIn(folder: string): number {
  const sizes = readdirSync(folder).map((file) => {
    // The file is renamed when it is complete: it may be gone by now.
    return statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0
  })
  return Math.round(sizes.reduce((sum, bytes) => sum + bytes, 0) / 1_000_000)
}
