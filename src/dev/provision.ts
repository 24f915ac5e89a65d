import { accessSync, constants, statSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { delimiter, join, basename, dirname, resolve } from 'node:path'
import { homedir } from 'node:os'

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
