import { parseArgs } from 'node:util'
import {
  type Arguments,
  type Command,
  type CommandGroup,
  UsageError,
  commandHelp,
  programHelp,
} from './command.ts'

/** What was typed after `posthorn` asks for. */
export type Wanted =
  | { kind: 'version' }
  | { kind: 'help'; text: string }
  | { kind: 'run'; command: Command; args: readonly string[] }

type Entry = Command | CommandGroup

const OPTIONS = ['--help', '--version']

/** Finds the command that was typed. Throws UsageError for one that does not exist. */
export function findCommand(commands: readonly Entry[], argv: readonly string[]): Wanted {
  const [first = '', ...rest] = argv
  if (first === '--version' || first === '-v') return { kind: 'version' }
  const asksForHelp = first === 'help' || first === '--help' || first === '-h'
  const [typed = '', ...args] = asksForHelp ? rest : argv
  if (typed === '' || (asksForHelp && typed.startsWith('-')))
    return { kind: 'help', text: programHelp(commands) }
  const found = findEntry(commands, typed)
  const [second = '', ...others] = args
  const hasVerb = 'commands' in found && second !== '' && !second.startsWith('-')
  const entry = hasVerb ? findVerb(found, second) : found
  if (asksForHelp || args.includes('--help') || args.includes('-h'))
    return { kind: 'help', text: commandHelp(entry) }
  if ('commands' in entry)
    throw new UsageError(entry.name, [`it takes one of ${verbsOf(entry).join(', ')} first`])
  return { kind: 'run', command: entry, args: hasVerb ? others : args }
}

function findEntry(commands: readonly Entry[], typed: string): Entry {
  const entry = commands.find(({ name }) => name === typed)
  if (entry !== undefined) return entry
  const isOption = typed.startsWith('-')
  const known = isOption ? OPTIONS : commands.map(({ name }) => name)
  const what = isOption ? 'an option' : 'a command'
  throw new UsageError('', [describeUnknown(typed, { place: 'the first word', what, known })])
}

function findVerb(group: CommandGroup, typed: string): Command {
  const command = group.commands.find(({ name }) => name === `${group.name} ${typed}`)
  if (command !== undefined) return command
  const known = verbsOf(group)
  throw new UsageError(group.name, [
    describeUnknown(typed, { place: 'the first word after it', what: `one of ${known.join(', ')}`, known }),
  ])
}

function verbsOf({ name, commands }: CommandGroup): string[] {
  return commands.map((command) => command.name.slice(name.length + 1))
}

/** A longer word might be an API key, which has 32 characters at least. */
const NAMEABLE = /^-{0,2}[A-Za-z][\w-]{0,23}$/

/**
 * Describes a word that is not known as `what`, such as "a command", with those that are and share its first three
 * letters. `place` is said instead of a word that might be a secret or could write to the terminal what it likes.
 */
function describeUnknown(
  word: string,
  { place, what, known }: { place: string; what: string; known: readonly string[] },
): string {
  if (!NAMEABLE.test(word)) return `${place} is not ${what}`
  const [, start] = /^-*([\w-]{3})/.exec(word.toLowerCase()) ?? []
  const similar = known.filter((name) => start !== undefined && name.replace(/^-+/, '').startsWith(start))
  return `${word} is not ${what}${similar.length === 0 ? '' : `; did you mean ${similar.join(' or ')}?`}`
}

/** Reads what follows a command, unparsed, and what is wrong with how it was given. No value is repeated there. */
export function readArguments(
  { name: command, operand, options = [] }: Command,
  args: readonly string[],
): Arguments {
  const given = new Map<string, string>()
  const operands: string[] = []
  const problems: string[] = []
  const placeOf = (index: number): string => `word ${index + 1} after "${command}"`
  // An option that is followed by another one has no value; left as it is, it would swallow that other one.
  const spelled = args.map((arg, index) => {
    const lacksValue = index === args.length - 1 || args[index + 1]?.startsWith('--') === true
    return lacksValue && options.some(({ name, value }) => value !== undefined && arg === `--${name}`)
      ? `${arg}=`
      : arg
  })
  const { tokens } = parseArgs({
    args: spelled,
    options: Object.fromEntries(
      options.map(({ name, value }) => [name, { type: value === undefined ? 'boolean' : 'string' }] as const),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const unknown = new Set<number>()
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    if (token.kind === 'positional') {
      // It is meant as the value of an option that does not exist.
      if (unknown.has(token.index - 1)) continue
      operands.push(token.value)
      if (operands.length > (operand === undefined ? 0 : 1))
        problems.push(`${placeOf(token.index)} is one too many`)
      continue
    }
    const option = options.find(({ name }) => name === token.name)
    if (option === undefined) {
      unknown.add(token.index)
      continue
    }
    if (given.has(option.name)) problems.push(`--${option.name} stands there twice`)
    else if (option.value === undefined && token.value !== undefined)
      problems.push(`--${option.name} takes no value`)
    else if (option.value !== undefined && token.value === '') problems.push(`--${option.name} needs a value`)
    given.set(option.name, token.value ?? '')
  }
  const known = ['--help', ...options.map(({ name }) => `--${name}`)]
  // `-abc` is three tokens, and one mistake.
  for (const index of unknown) {
    const [word = ''] = (args[index] ?? '').split('=')
    problems.push(describeUnknown(word, { place: placeOf(index), what: 'an option of it', known }))
  }
  const [first = ''] = operands
  if (operand !== undefined && first === '') problems.push(`${operand} is missing`)
  for (const { name, isRequired } of options)
    if (isRequired === true && !given.has(name)) problems.push(`--${name} is missing`)
  return { command, operand: first, given, problems }
}

type Reader = {
  has(option: string): boolean
  /** The value, or null where it is missing or `parse` threw. */
  optional<T>(option: string, parse: (text: string) => T): T | null
  /** The same for one that others make necessary; empty until the problems are thrown. */
  required(option: string, parse: (text: string) => string): string
  /** The same for the value of an environment variable, which counts where the option is not given. */
  orVariable<T>(option: string, variable: string, parse: (text: string) => T): T | null
  refuse(problem: string): void
}

/** Builds what parses the values of options; what is wrong with them goes onto `problems`. */
export function createReader(
  { given, problems }: Arguments,
  env: Readonly<Record<string, string | undefined>> = {},
): Reader {
  // An empty value has been named already, or is none.
  const parseNamed = <T>(name: string, text: string, parse: (text: string) => T): T | null => {
    if (text === '') return null
    try {
      return parse(text)
    } catch (error) {
      problems.push(`${name} ${error instanceof Error ? error.message : String(error)}`)
      return null
    }
  }
  const optional = <T>(option: string, parse: (text: string) => T): T | null =>
    parseNamed(`--${option}`, given.get(option) ?? '', parse)
  return {
    has: (option) => given.has(option),
    optional,
    required(option, parse) {
      const missing = `--${option} is missing`
      if (!given.has(option) && !problems.includes(missing)) problems.push(missing)
      return optional(option, parse) ?? ''
    },
    orVariable: (option, variable, parse) =>
      given.has(option) ? optional(option, parse) : parseNamed(variable, env[variable] ?? '', parse),
    refuse: (problem) => void problems.push(problem),
  }
}

/** Parses the id of an organisation or a member. */
export function platformId(text: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(text)) throw new Error('must be 1 to 64 of A-Z a-z 0-9 _ -')
  return text
}
