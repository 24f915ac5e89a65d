import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A command to run under a process guard, and how the guard stops it. */
type GuardedCommand = {
  command: string
  args: string[]
  cwd?: string
  /** User and group to run as; only root can set them. */
  uid?: number
  gid?: number
  stopSignal: NodeJS.Signals
  /** The delay between the stop signal and `SIGKILL`. */
  killAfterMs: number
}

const guardFile = fileURLToPath(new URL('./process-guard.mjs', import.meta.url))

/**
 * Starts a command under a process guard, which stops it when this process ends for any reason. Returns the guard.
 * Ending the guard's standard input stops the command. `output`, a pipe or a file descriptor, receives what the command
 * prints.
 */
function spawnGuarded(
  command: GuardedCommand,
  env: NodeJS.ProcessEnv,
  output: 'pipe' | number,
): ChildProcess {
  const stdio: StdioOptions = ['pipe', output, output, 'ipc']
  // Detached, since Ctrl-C in a terminal signals the whole process group and only the parent should handle it.
  const guard = spawn(process.execPath, [guardFile, JSON.stringify(command)], { env, stdio, detached: true })
  // Writing to a guard that has ended fails; its `exit` event reports that.
  guard.stdin?.on('error', () => undefined)
  return guard
}

/** The exit of a guarded process. */
type ProcessExit = { code: number | null; signal: NodeJS.Signals | null }

/** The command to run, its log file and its readiness probe. */
export type GuardedProcessOptions = Omit<GuardedCommand, 'killAfterMs'> & {
  /** Its name in error messages. */
  name: string
  env?: NodeJS.ProcessEnv
  /** Output is appended here. */
  logFile: string
  /** Runs every 50 ms with the log since the start; a probe that throws counts as not ready. */
  isReady: (log: string) => boolean | Promise<boolean>
  readyTimeoutMs: number
  killAfterMs?: number
}

/** A child process that does not outlive this one. */
export type GuardedProcess = {
  pid: number
  /** Sends the stop signal, kills after `killAfterMs`, and resolves when it has ended. May be called twice. */
  stop(): Promise<void>
  exited: Promise<ProcessExit>
}

const PROBE_INTERVAL_MS = 50
const DEFAULT_KILL_DELAY_MS = 10_000
const LOG_LINES_IN_ERROR = 20

/**
 * Starts a child process and waits until it is ready. The child ends with this process, even by `kill -9`.
 *
 * @throws Error with the last lines of the log, when the child ends or stays unready for `readyTimeoutMs`
 */
export async function startGuardedProcess(options: GuardedProcessOptions): Promise<GuardedProcess> {
  const { name, logFile, isReady, readyTimeoutMs, env = process.env, ...command } = options
  const log = openLog(logFile)
  const guarded = { killAfterMs: DEFAULT_KILL_DELAY_MS, ...command }
  const guard = spawnGuarded(guarded, env, log.fileDescriptor)
  closeSync(log.fileDescriptor)

  const state: { exit: ProcessExit | null; childPid: number | null } = { exit: null, childPid: null }
  const exited = new Promise<ProcessExit>((resolve) => {
    const settle = (exit: ProcessExit): void => {
      state.exit = exit
      resolve(exit)
    }
    guard.once('exit', (code, signal) => settle({ code, signal }))
    // The guard could not be started: no process or file descriptor is available.
    guard.on('error', () => settle({ code: null, signal: null }))
  })
  guard.once('message', (message: { childPid: number }) => {
    state.childPid = message.childPid
  })
  const stop = async (): Promise<void> => {
    guard.stdin?.end()
    await exited
  }
  const fail = (what: string): Error =>
    new Error(`${name} ${what}.\n${lastLines(log.read())}\nLog: ${logFile}`)

  const deadline = Date.now() + readyTimeoutMs
  for (;;) {
    const ready = await answersReady(isReady, log.read())
    // Checked after the probe: another process may have answered it while the child has failed.
    if (state.exit !== null) throw fail(`ended before it was ready (${describeExit(state.exit)})`)
    if (ready && state.childPid !== null) return { pid: state.childPid, stop, exited }
    if (Date.now() >= deadline) {
      await stop()
      throw fail(`was not ready within ${readyTimeoutMs / 1000} s`)
    }
    await wait(PROBE_INTERVAL_MS)
  }
}

async function answersReady(isReady: GuardedProcessOptions['isReady'], log: string): Promise<boolean> {
  try {
    return await isReady(log)
  } catch {
    return false
  }
}

function openLog(file: string): { fileDescriptor: number; read: () => string } {
  mkdirSync(dirname(file), { recursive: true })
  const fileDescriptor = openSync(file, 'a')
  const start = statSync(file).size
  return { fileDescriptor, read: () => readFileSync(file).subarray(start).toString('utf8') }
}

function lastLines(log: string): string {
  const text = log.trim()
  return text === '' ? '(it logged nothing)' : text.split('\n').slice(-LOG_LINES_IN_ERROR).join('\n')
}

function describeExit({ code, signal }: ProcessExit): string {
  return signal === null ? `exit code ${code ?? 'unknown'}` : `signal ${signal}`
}

/** A command that runs for a while and ends by itself. */
export type Tool = Omit<GuardedCommand, 'stopSignal' | 'killAfterMs'> & {
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

const PROGRESS_INTERVAL_MS = 10_000

/** Prints `describe(seconds)` in intervals until `work` has ended. */
export async function withProgress<T>(
  print: (line: string) => void,
  describe: (seconds: number) => string,
  work: () => Promise<T>,
): Promise<T> {
  const startedAt = Date.now()
  const show = (): void => print(describe(Math.round((Date.now() - startedAt) / 1000)))
  const timer = setInterval(show, PROGRESS_INTERVAL_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
