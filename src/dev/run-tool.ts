import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { spawnGuarded } from './spawn-guarded.ts'

/** A command that runs for a while and ends by itself. */
export type Tool = {
  command: string
  args: string[]
  cwd?: string
  uid?: number
  gid?: number
  env?: NodeJS.ProcessEnv
  /** After this time it is stopped and counts as failed. */
  timeoutMs: number
  /** Receives every line of both output streams. */
  onLine?: (line: string) => void
}

/** Runs a command to its end and returns its output. Throws with its last lines when it fails. */
export type RunTool = (tool: Tool) => Promise<string>

const KILL_AFTER_MS = 2_000
const MAX_LINES = 200
const LINES_IN_ERROR = 3

/** Runs a command under a process guard, so that it ends with this process. */
export const runTool: RunTool = async ({ timeoutMs, onLine, env = process.env, ...command }) => {
  const guarded = { ...command, stopSignal: 'SIGTERM', killAfterMs: KILL_AFTER_MS } as const
  const guard = spawnGuarded(guarded, env, 'pipe')
  const lines: string[] = []
  for (const stream of [guard.stdout, guard.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      if (lines.length > MAX_LINES) lines.shift()
      onLine?.(line)
    })
  }
  const state = { isLate: false }
  const timer = setTimeout(() => {
    state.isLate = true
    guard.stdin?.end()
  }, timeoutMs)
  const [code] = (await once(guard, 'close')) as [number | null]
  clearTimeout(timer)
  if (code === 0 && !state.isLate) return lines.join('\n')
  const output = lines
    .filter((line) => line.trim() !== '')
    .slice(-LINES_IN_ERROR)
    .join(' | ')
  const how = state.isLate ? `not done after ${timeoutMs / 1000} s` : `exit code ${code ?? 'unknown'}`
  throw new Error(output === '' ? how : `${how}: ${output}`)
}

/** Prints `describe(seconds)` every `everyMs` until `work` has ended. */
export async function withProgress<T>(
  print: (line: string) => void,
  describe: (seconds: number) => string,
  work: () => Promise<T>,
  everyMs = 10_000,
): Promise<T> {
  const startedAt = Date.now()
  const timer = setInterval(() => print(describe(Math.round((Date.now() - startedAt) / 1000))), everyMs)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
