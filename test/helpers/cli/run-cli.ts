import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { testServers } from '../runner/servers.ts'
import type { Arguments } from '../../../src/cli/command-line/command.ts'
import { COMMANDS } from '../../../src/cli/command-line/commands.ts'
import { findCommand, readArguments } from '../../../src/cli/command-line/read-arguments.ts'
import { ALL_SETTINGS, type Environment, loadConfig } from '../../../src/config/load.ts'
import { once } from 'node:events'
import { eventually } from '../eventually.ts'
import { problemsOf } from '../problems-of.ts'

export type CliResult = { code: number | null; stdout: string; stderr: string }

/** Runs `posthorn ARGS` as a process of its own, with nothing in its environment but `env`. */
export async function runCli(args: readonly string[], env: Record<string, string> = {}): Promise<CliResult> {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, [testServers().posthorn, ...args], {
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}

/** What `posthorn` reads from its arguments before it loads the command. */
export function argumentsOf(argv: readonly string[]): Arguments {
  const wanted = findCommand(COMMANDS, argv)
  if (wanted.kind !== 'run') throw new Error(`${argv.join(' ')} runs no command`)
  return readArguments(wanted.command, wanted.args)
}

/** Returns the problems that `loadConfig` finds in these settings. */
export const configProblemsOf = (env: Environment, names = ALL_SETTINGS): readonly string[] =>
  problemsOf(() => loadConfig(env, names))

export type Listener = {
  /** Everything it printed to standard output, and to standard error. */
  stdout(): string
  stderr(): string
  /** The signing secret that it printed. */
  secret(): string
  /** The lines of events, split into time, event key, id, status and duration. */
  events(): string[][]
  /** Resolves when it has opened a stream so many times. */
  hasConnected(times?: number): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** Resolves to its exit code. */
  ended: Promise<number | null>
}

/**
 * Starts `posthorn listen ARGS` as a process of its own, with nothing in its environment but `env`. `program` is another
 * one that does the same.
 */
export function startListen(
  args: readonly string[],
  env: Record<string, string>,
  program: readonly string[] = [testServers().posthorn, 'listen'],
): Listener {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, [...program, ...args], {
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const killWithUs = (): void => void child.kill('SIGKILL')
  process.once('exit', killWithUs)
  const ended = once(child, 'close').then(([code]: (number | null)[]) => {
    process.off('exit', killWithUs)
    return code ?? null
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  return {
    stdout: () => stdout,
    stderr: () => stderr,
    secret: () => /^Signing secret: (\S+)$/m.exec(stdout)?.[1] ?? '',
    events: () =>
      stdout
        .split('\n')
        .filter((line) => /^\d\d:\d\d:\d\d\.\d{3} {2}/.test(line))
        .map((line) => line.split('  ')),
    hasConnected: (times = 1) =>
      eventually(() => {
        if ([...stderr.matchAll(/^Listening at /gm)].length < times)
          throw new Error(`not connected: ${stderr}`)
      }),
    kill: (signal) => void child.kill(signal),
    ended,
  }
}
