import { closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { KeptCommand } from './spawn-keeper.ts'
import { spawnKeeper } from './spawn-keeper.ts'

/** How a kept process ended. */
export type ProcessExit = { code: number | null; signal: NodeJS.Signals | null }

/** What to run, where it logs and how to tell that it is ready. */
export type KeptProcessOptions = Omit<KeptCommand, 'killAfterMs'> & {
  /** What error messages call it. */
  name: string
  env?: NodeJS.ProcessEnv
  /** Output is appended here. */
  logFile: string
  /** Asked every 50 ms with what was logged since the start; a probe that throws means "not yet". */
  isReady: (log: string) => boolean | Promise<boolean>
  readyTimeoutMs: number
  killAfterMs?: number
}

/** A child process that cannot outlive this one. */
export type KeptProcess = {
  pid: number
  /** Sends the stop signal, kills after `killAfterMs`; resolves when it is gone. May be called twice. */
  stop(): Promise<void>
  exited: Promise<ProcessExit>
}

const PROBE_EVERY_MS = 50
const DEFAULT_KILL_AFTER_MS = 10_000
const LOG_LINES_IN_ERROR = 20

/**
 * Starts a child process and waits until it is ready. The child ends with this process, even by `kill -9`.
 *
 * @throws Error with the last lines of the log, when the child ends or stays unready for `readyTimeoutMs`
 */
export async function startKeptProcess(options: KeptProcessOptions): Promise<KeptProcess> {
  const { name, logFile, isReady, readyTimeoutMs, env = process.env, ...command } = options
  const log = openLog(logFile)
  const kept = { killAfterMs: DEFAULT_KILL_AFTER_MS, ...command }
  const keeper = spawnKeeper(kept, env, { fileDescriptor: log.fileDescriptor })
  closeSync(log.fileDescriptor)

  const state: { exit: ProcessExit | null; childPid: number | null } = { exit: null, childPid: null }
  const exited = new Promise<ProcessExit>((resolve) => {
    const settle = (exit: ProcessExit): void => {
      state.exit = exit
      resolve(exit)
    }
    keeper.once('exit', (code, signal) => settle({ code, signal }))
    // It could not be started at all: no process or file descriptor to be had.
    keeper.on('error', () => settle({ code: null, signal: null }))
  })
  keeper.once('message', (message: { childPid: number }) => {
    state.childPid = message.childPid
  })
  const stop = async (): Promise<void> => {
    keeper.stdin?.end()
    await exited
  }
  const fail = (what: string): Error =>
    new Error(`${name} ${what}.\n${lastLines(log.read())}\nLog: ${logFile}`)

  const deadline = Date.now() + readyTimeoutMs
  for (;;) {
    const ready = await answersReady(isReady, log.read())
    // After the probe: what answered may be something else, while the child has failed.
    if (state.exit !== null) throw fail(`ended before it was ready (${describeExit(state.exit)})`)
    if (ready && state.childPid !== null) return { pid: state.childPid, stop, exited }
    if (Date.now() >= deadline) {
      await stop()
      throw fail(`was not ready within ${readyTimeoutMs / 1000} s`)
    }
    await wait(PROBE_EVERY_MS)
  }
}

async function answersReady(isReady: KeptProcessOptions['isReady'], log: string): Promise<boolean> {
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
