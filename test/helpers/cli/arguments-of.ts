import type { Arguments } from '../../../src/cli/command-line/command.ts'
import { COMMANDS } from '../../../src/cli/command-line/commands.ts'
import { findCommand } from '../../../src/cli/command-line/find-command.ts'
import { readArguments } from '../../../src/cli/command-line/read-arguments.ts'

/** What `posthorn` reads from its arguments before it loads the command. */
export function argumentsOf(argv: readonly string[]): Arguments {
  const wanted = findCommand(COMMANDS, argv)
  if (wanted.kind !== 'run') throw new Error(`${argv.join(' ')} runs no command`)
  return readArguments(wanted.command, wanted.args)
}
