import { spawn } from 'node:child_process'
import type { ChildProcess, StdioOptions } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** What a keeper runs and how it ends it. */
export type KeptCommand = {
  command: string
  args: string[]
  cwd?: string
  /** User and group to run as; only root can set them. */
  uid?: number
  gid?: number
  stopSignal: NodeJS.Signals
  /** How long after the stop signal `SIGKILL` follows. */
  killAfterMs: number
}

const keeperFile = fileURLToPath(new URL('./keeper.mjs', import.meta.url))

/**
 * Starts a command under a guardian that ends it when this process ends, however that happens.
 * `output` receives what the command prints. Ending the keeper's standard input stops the command.
 */
export function spawnKeeper(
  kept: KeptCommand,
  env: NodeJS.ProcessEnv,
  output: 'pipe' | { fileDescriptor: number },
): ChildProcess {
  const sink = output === 'pipe' ? 'pipe' : output.fileDescriptor
  const stdio: StdioOptions = ['pipe', sink, sink, 'ipc']
  // Detached: Ctrl-C in a terminal reaches every process of its group, and only the parent should act on it.
  const keeper = spawn(process.execPath, [keeperFile, JSON.stringify(kept)], { env, stdio, detached: true })
  // A keeper that is gone already makes writing to it fail, which its exit tells better.
  keeper.stdin?.on('error', () => undefined)
  return keeper
}
