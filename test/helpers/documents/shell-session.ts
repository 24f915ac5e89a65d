import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** One shell in which a reader pastes commands: variables and the working folder stay from one `run` to the next. */
export type ShellSession = {
  /**
   * Runs commands and returns their output. Their standard input is empty.
   *
   * @throws Error with their output when one of them fails or they take too long; the session has ended then
   */
  run(commands: string, timeoutMs?: number): Promise<{ stdout: string; stderr: string }>
  /** Kills the shell with everything that it started. */
  close(): Promise<void>
}

const RUN_TIMEOUT_MS = 60_000

/** Starts a POSIX shell that stops at the first error and at unset variables. `folder` receives its files. */
export function startShellSession(folder: string, env: Record<string, string>): ShellSession {
  mkdirSync(folder, { recursive: true })
  const shell = spawn('sh', ['-eu'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  const exited = once(shell, 'exit')
  exited.catch(() => undefined)
  // A shell that has ended cannot be written to; its `exit` reports that.
  shell.stdin.on('error', () => undefined)
  const killWithUs = (): void => killGroup(shell.pid)
  process.once('exit', killWithUs)
  let onDone: (isDone: boolean) => void = () => undefined
  // The shell itself prints nothing but the end of each run.
  shell.stdout.on('data', () => onDone(true))
  let runs = 0

  return {
    async run(commands, timeoutMs = RUN_TIMEOUT_MS) {
      const file = join(folder, String(++runs))
      writeFileSync(file, commands)
      const output = (): { stdout: string; stderr: string } => ({
        stdout: readFileSync(`${file}.out`, 'utf8'),
        stderr: readFileSync(`${file}.err`, 'utf8'),
      })
      for (const stream of ['out', 'err']) writeFileSync(`${file}.${stream}`, '')
      const timer = setTimeout(killWithUs, timeoutMs)
      const done = new Promise<boolean>((resolve) => (onDone = resolve))
      // Sourced, so that a here-document and an empty standard input go together.
      shell.stdin.write(`. '${file}' </dev/null >'${file}.out' 2>'${file}.err'\necho done\n`)
      const isDone = await Promise.race([done, exited.then(() => false)])
      clearTimeout(timer)
      if (isDone) return output()
      const { stdout, stderr } = output()
      const why = shell.signalCode === null ? 'failed' : `not done after ${timeoutMs / 1_000} s`
      throw new Error(`${why}:\n${commands}\n${stdout}\n${stderr}`)
    },
    async close() {
      process.off('exit', killWithUs)
      killWithUs()
      if (shell.exitCode === null && shell.signalCode === null) await exited
    },
  }
}

/** A shell and what it started are one process group. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}
