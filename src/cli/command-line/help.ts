import type { Command, CommandGroup, Option } from './command.ts'

const MAX_COLUMNS = 110

const HELP: Option = { name: 'help', meaning: 'print this help' }

/** Returns the help of `posthorn` itself. */
export function programHelp(commands: readonly (Command | CommandGroup)[]): string {
  return [
    'Usage: posthorn COMMAND [OPTIONS]',
    '',
    ...inColumns(commands.map(({ name, summary }) => [name, summary])),
    '',
    'posthorn COMMAND --help shows how a command is used, with examples. posthorn --version prints the release.',
    'Configuration comes from the environment: see .env.example.',
  ].join('\n')
}

/** Returns the help of a command, or of all commands of a group. */
export function commandHelp(command: Command | CommandGroup): string {
  return 'commands' in command ? groupHelp(command) : helpOf(command)
}

function helpOf(command: Command): string {
  const { summary, details = [], options = [], examples } = command
  const rows = [...options, HELP].map((option) => [spelled(option), meaningOf(option)] as const)
  return [
    usageOf(command),
    '',
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    ...details,
    '',
    'Options:',
    ...inColumns(rows),
    '',
    'Examples:',
    ...examples.map((example) => `  posthorn ${example}`),
  ].join('\n')
}

function groupHelp({ name, commands }: CommandGroup): string {
  return [
    `Usage: posthorn ${name} COMMAND [OPTIONS]`,
    '',
    ...inColumns(
      commands.map(({ name, operand, summary }) => [`posthorn ${withOperand(name, operand)}`, summary]),
    ),
    '',
    'Examples:',
    ...commands.flatMap(({ examples }) => examples.map((example) => `  posthorn ${example}`)),
    '',
    `posthorn ${name} COMMAND --help shows the options of a command.`,
  ].join('\n')
}

/** The command with everything that it takes; optional parts are in brackets. */
function usageOf({ name, operand, options = [] }: Command): string {
  const start = `Usage: posthorn ${withOperand(name, operand)}`
  const lines = [start]
  for (const option of options) {
    const part = option.isRequired === true ? spelled(option) : `[${spelled(option)}]`
    const longer = `${lines.at(-1) ?? ''} ${part}`
    if (longer.length > MAX_COLUMNS) lines.push(`${' '.repeat(start.length)} ${part}`)
    else lines[lines.length - 1] = longer
  }
  return lines.join('\n')
}

/** Returns `seed FILE`: the command as it is typed. */
function withOperand(name: string, operand: string | undefined): string {
  return operand === undefined ? name : `${name} ${operand}`
}

function spelled({ name, value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`
}

function meaningOf({ meaning, isRequired }: Option): string {
  return isRequired === true ? `${meaning} (required)` : meaning
}

function inColumns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`)
}
