import { spawn } from 'node:child_process'
import type { ChildProcess, StdioOptions } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A command to run under a process guard, and how the guard stops it. */
export type GuardedCommand = {
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
 * Ending the guard's standard input stops the command. `output` receives what the command prints.
 */
export function spawnGuarded(
  command: GuardedCommand,
  env: NodeJS.ProcessEnv,
  output: 'pipe' | { fileDescriptor: number },
): ChildProcess {
  const sink = output === 'pipe' ? 'pipe' : output.fileDescriptor
  const stdio: StdioOptions = ['pipe', sink, sink, 'ipc']
  // Detached, since Ctrl-C in a terminal signals the whole process group and only the parent should handle it.
  const guard = spawn(process.execPath, [guardFile, JSON.stringify(command)], { env, stdio, detached: true })
  // Writing to a guard that has ended fails; its `exit` event reports that.
  guard.stdin?.on('error', () => undefined)
  return guard
}
