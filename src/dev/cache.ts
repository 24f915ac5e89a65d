import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { isExecutable } from './find-executable.ts'

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
    renameOrYield(draft, folder, path)
    return path
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

function renameOrYield(draft: string, folder: string, path: string): void {
  try {
    renameSync(draft, folder)
  } catch (error) {
    if (!isExecutable(path)) throw error
  }
}
