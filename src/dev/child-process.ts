import { closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { GuardedCommand } from './spawn-guarded.ts'
import { spawnGuarded } from './spawn-guarded.ts'

/** The exit of a guarded process. */
export type ProcessExit = { code: number | null; signal: NodeJS.Signals | null }

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
  const guard = spawnGuarded(guarded, env, { fileDescriptor: log.fileDescriptor })
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
