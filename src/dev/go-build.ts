import { dirname } from 'node:path'
import { findOnPath, publishFolder, type Way } from './provision.ts'
import { runTool, withProgress, type RunTool } from './guarded-process.ts'

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
