import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { testServers } from '../runner/servers.ts'
import type { Arguments } from '../../../src/cli/command-line/command.ts'
import { COMMANDS } from '../../../src/cli/command-line/commands.ts'
import { findCommand } from '../../../src/cli/command-line/find-command.ts'
import { readArguments } from '../../../src/cli/command-line/read-arguments.ts'
import { ConfigError, loadConfig, ALL_SETTINGS, type Environment } from '../../../src/config/load.ts'

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

/** Returns the problems that `loadConfig` finds in these settings; none where they are valid. */
export function problemsOf(env: Environment, names = ALL_SETTINGS): readonly string[] {
  try {
    loadConfig(env, names)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  throw new Error('the configuration was accepted')
}
