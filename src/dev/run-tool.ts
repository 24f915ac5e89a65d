import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { spawnKeeper } from './spawn-keeper.ts'

/** A command that runs for a while and ends by itself. */
export type Tool = {
  command: string
  args: string[]
  cwd?: string
  uid?: number
  gid?: number
  env?: NodeJS.ProcessEnv
  /** After this it is stopped and counts as failed. */
  timeoutMs: number
  /** Every line it prints, from either stream. */
  onLine?: (line: string) => void
}

/** Runs a command to its end; answers what it printed. Throws with its last lines when it fails. */
export type RunTool = (tool: Tool) => Promise<string>

const KILL_AFTER_MS = 2_000
const KEPT_LINES = 200
const LINES_IN_ERROR = 3

/** {@link RunTool} for real. The command ends with this process. */
export const runTool: RunTool = async ({ timeoutMs, onLine, env = process.env, ...command }) => {
  const kept = { ...command, stopSignal: 'SIGTERM', killAfterMs: KILL_AFTER_MS } as const
  const keeper = spawnKeeper(kept, env, 'pipe')
  const lines: string[] = []
  for (const stream of [keeper.stdout, keeper.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      if (lines.length > KEPT_LINES) lines.shift()
      onLine?.(line)
    })
  }
  const state = { isLate: false }
  const timer = setTimeout(() => {
    state.isLate = true
    keeper.stdin?.end()
  }, timeoutMs)
  const [code] = (await once(keeper, 'close')) as [number | null]
  clearTimeout(timer)
  if (code === 0 && !state.isLate) return lines.join('\n')
  const told = lines
    .filter((line) => line.trim() !== '')
    .slice(-LINES_IN_ERROR)
    .join(' | ')
  const how = state.isLate ? `not done after ${timeoutMs / 1000} s` : `exit code ${code ?? 'unknown'}`
  throw new Error(told === '' ? how : `${how}: ${told}`)
}

/** Says `describe(seconds)` every `everyMs` while `work` goes on. */
export async function withProgress<T>(
  say: (line: string) => void,
  describe: (seconds: number) => string,
  work: () => Promise<T>,
  everyMs = 10_000,
): Promise<T> {
  const startedAt = Date.now()
  const timer = setInterval(() => say(describe(Math.round((Date.now() - startedAt) / 1000))), everyMs)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
