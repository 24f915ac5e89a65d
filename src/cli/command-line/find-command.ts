import { type Command, type CommandGroup, UsageError } from './command.ts'
import { describeUnknown } from './describe-word.ts'
import { commandHelp, programHelp } from './help.ts'

/** What was typed after `posthorn` asks for. */
export type Wanted =
  | { kind: 'version' }
  | { kind: 'help'; text: string }
  | { kind: 'run'; command: Command; args: readonly string[] }

type Entry = Command | CommandGroup

const OPTIONS = ['--help', '--version']

/** Finds the command that was typed. Throws UsageError for one that does not exist, naming the nearest. */
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
