import { describeError } from '../../process/visible-text.ts'
import { UsageError, type Command, type CommandGroup, type Output, programHelp } from './command.ts'
import { findCommand, readArguments } from './read-arguments.ts'

import packageJson from '../../../package.json' with { type: 'json' }

const USAGE_ERROR = 2

/**
 * Runs the command that `argv` names and sets the exit code of the process: 0, 1 for an error, 2 for a wrong call.
 * `spell` changes each text of help and of errors before it is printed.
 */
export async function runProgram(
  commands: readonly (Command | CommandGroup)[],
  argv: readonly string[],
  spell = (text: string): string => text,
): Promise<void> {
  const output: Output = {
    print: (text) => void process.stdout.write(`${text}\n`),
    note: (text) => void process.stderr.write(`${text}\n`),
  }

  // The reader of a pipe may be gone, such as `head`: the rest of the output is for none.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })

  async function main(): Promise<number> {
    if (argv.length === 0) {
      output.note(programHelp(commands))
      return USAGE_ERROR
    }
    const wanted = findCommand(commands, argv)
    switch (wanted.kind) {
      case 'help':
        output.print(spell(wanted.text))
        return 0
      case 'version':
        output.print(packageJson.version)
        return 0
      case 'run':
        return run(wanted.command, wanted.args, output)
    }
  }

  try {
    process.exitCode = await main()
  } catch (error) {
    output.note(spell(describeError(error)))
    // Temporal's native parts, or a connection, may keep the process alive; a supervisor has to see it end.
    process.exit(isUsersMistake(error) ? USAGE_ERROR : 1)
  }
}

async function run(command: Command, argv: readonly string[], output: Output): Promise<number> {
  const args = readArguments(command, argv)
  // A command whose options take values adds what is wrong with those, and throws all problems at once.
  const hasValues = command.options?.some(({ value }) => value !== undefined) === true
  if (args.problems.length > 0 && !hasValues) throw new UsageError(command.name, args.problems)
  const runCommand = await command.load()
  return runCommand(args, output)
}

/** ConfigError is known by its name: its module takes longer than every help. */
function isUsersMistake(error: unknown): boolean {
  return error instanceof Error && (error.name === 'UsageError' || error.name === 'ConfigError')
}
