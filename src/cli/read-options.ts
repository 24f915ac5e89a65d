import { parseArgs } from 'node:util'

type OptionRules<Option extends string> = {
  /** What comes before the options, such as `list` of `posthorn api-key list`. */
  after: string
  options: readonly Option[]
  /** The options that take no value. */
  flags: readonly Option[]
}

/** Returns the options as they were given, unparsed, and what is wrong with how they were given. */
export function readOptions<Option extends string>(
  { after, options, flags }: OptionRules<Option>,
  args: readonly string[],
): { given: Map<Option, string>; problems: string[] } {
  const given = new Map<Option, string>()
  const problems: string[] = []
  const isFlag = (option: string): boolean => flags.some((flag) => flag === option)
  // An option that is followed by another one has no value; left as it is, it would swallow that other one.
  const spelled = args.map((arg, index) => {
    const lacksValue = index === args.length - 1 || args[index + 1]?.startsWith('--') === true
    return lacksValue && options.some((name) => !isFlag(name) && arg === `--${name}`) ? `${arg}=` : arg
  })
  const { tokens } = parseArgs({
    args: spelled,
    options: Object.fromEntries(
      options.map((name) => [name, { type: isFlag(name) ? 'boolean' : 'string' }] as const),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    if (token.kind === 'positional') {
      problems.push(`word ${token.index + 1} after "${after}" belongs to no option`)
      continue
    }
    const option = options.find((name) => name === token.name)
    if (option === undefined) problems.push(`${token.rawName} is not an option of it`)
    else if (given.has(option)) problems.push(`--${option} stands there twice`)
    else if (isFlag(option) && token.value !== undefined) problems.push(`--${option} takes no value`)
    else if (!isFlag(option) && token.value === '') problems.push(`--${option} needs a value`)
    if (option !== undefined) given.set(option, token.value ?? '')
  }
  return { given, problems }
}

type Reader<Option extends string> = {
  has(option: Option): boolean
  /** The value, or null where it is missing or `parse` threw. */
  optional<T>(option: Option, parse: (text: string) => T): T | null
  /** The same for a required option; empty until the problems are thrown. */
  required(option: Option, parse: (text: string) => string): string
  /** The same for the value of an environment variable, which counts where the option is not given. */
  orVariable<T>(option: Option, variable: string, text: string, parse: (text: string) => T): T | null
  refuse(problem: string): void
}

/** Builds what parses the values of options; what is wrong with them goes onto `problems`. */
export function createReader<Option extends string>(
  given: ReadonlyMap<Option, string>,
  problems: string[],
): Reader<Option> {
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
  const optional = <T>(option: Option, parse: (text: string) => T): T | null =>
    parseNamed(`--${option}`, given.get(option) ?? '', parse)
  return {
    has: (option) => given.has(option),
    optional,
    required(option, parse) {
      if (!given.has(option)) problems.push(`--${option} is missing`)
      return optional(option, parse) ?? ''
    },
    orVariable: (option, variable, text, parse) =>
      given.has(option) ? optional(option, parse) : parseNamed(variable, text, parse),
    refuse: (problem) => void problems.push(problem),
  }
}

/** Parses the id of an organisation or a member. */
export function platformId(text: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(text)) throw new Error('must be 1 to 64 of A-Z a-z 0-9 _ -')
  return text
}
