import packageJson from '../../package.json' with { type: 'json' }
import { type Command, type Output, UsageError } from './command-line/command.ts'
import { COMMANDS } from './command-line/commands.ts'
import { describeError } from '../process/visible-text.ts'
import { findCommand } from './command-line/find-command.ts'
import { programHelp } from './command-line/help.ts'
import { readArguments } from './command-line/read-arguments.ts'

const USAGE_ERROR = 2

const output: Output = {
  print: (text) => void process.stdout.write(`${text}\n`),
  note: (text) => void process.stderr.write(`${text}\n`),
}

async function main(argv: readonly string[]): Promise<number> {
  if (argv.length === 0) {
    output.note(programHelp(COMMANDS))
    return USAGE_ERROR
  }
  const wanted = findCommand(COMMANDS, argv)
  switch (wanted.kind) {
    case 'help':
      output.print(wanted.text)
      return 0
    case 'version':
      output.print(packageJson.version)
      return 0
    case 'run':
      return run(wanted.command, wanted.args)
  }
}

async function run(command: Command, argv: readonly string[]): Promise<number> {
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

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  output.note(describeError(error))
  // Temporal's native parts, or a connection, may keep the process alive; a supervisor has to see it end.
  process.exit(isUsersMistake(error) ? USAGE_ERROR : 1)
}
