/** Prints results for scripts (`print`) and remarks for the user at the terminal (`note`). */
export type Output = { print: (text: string) => void; note: (text: string) => void }

export type Option = {
  /** Without its dashes. */
  name: string
  /** What stands for its value in the help; an option without one is a flag. */
  value?: string
  meaning: string
  isRequired?: true
}

/** What was given to a command, unparsed, and what is wrong with how it was given. */
export type Arguments = {
  /** The command as it is typed after `posthorn`. */
  command: string
  /** Empty where the command takes none. */
  operand: string
  given: ReadonlyMap<string, string>
  problems: string[]
}

/** Runs a command and returns its exit code. Throws UsageError for values that are wrong. */
export type RunCommand = (args: Arguments, output: Output) => Promise<number>

/** A command as data: help, parsing, dispatch and documents all read it. */
export type Command = {
  /** As it is typed after `posthorn`, such as `api-key create`. */
  name: string
  summary: string
  /** Further lines of its help. */
  details?: readonly string[]
  /** What stands for its one operand in the help. */
  operand?: string
  options?: readonly Option[]
  /** What is typed after `posthorn`. */
  examples: readonly string[]
  /** Imports what the command needs: loading all of them takes seconds. */
  load: () => Promise<RunCommand>
}

/** Commands with the same first word. */
export type CommandGroup = { name: string; summary: string; commands: readonly Command[] }

/**
 * A command called with arguments it cannot work with; every problem at once. They never repeat a value, which might be
 * a secret.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly problems: readonly string[]

  /** `command` as it is typed after `posthorn`, such as `api-key create`; empty for `posthorn` itself. */
  constructor(command: string, problems: readonly string[]) {
    const called = `posthorn ${command}`.trimEnd()
    super(
      [
        `${called} cannot be called like this:`,
        ...problems.map((problem) => `  - ${problem}`),
        `${called} --help says how.`,
      ].join('\n'),
    )
    this.problems = problems
  }
}

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
