import { SETTINGS } from './settings.ts'

type Settings = typeof SETTINGS

/** Every setting, read once at start and frozen. Units stand in the names. */
export type Config = { readonly [Name in keyof Settings]: ReturnType<Settings[Name]['parse']> }

export type Environment = Readonly<Record<string, string | undefined>>

/** Thrown with every problem of the environment at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`The configuration is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

/**
 * Reads settings from the environment; `names` limits it to those that a command needs.
 * An empty variable counts as not set.
 * Throws ConfigError naming every bad variable; no value is repeated there, it might be a secret.
 */
export function loadConfig<Name extends keyof Settings>(
  env: Environment,
  names: readonly Name[],
): Pick<Config, Name> {
  const problems: string[] = []
  const entries = names.map((name) => {
    const setting = SETTINGS[name]
    const given = env[setting.variable]
    const text = given === undefined || given.trim() === '' ? setting.fallback : given.trim()
    if (text === undefined) {
      problems.push(`${setting.variable} is not set: ${setting.description}`)
      return [name, undefined]
    }
    try {
      return [name, setting.parse(text)]
    } catch (error) {
      problems.push(`${setting.variable} ${error instanceof Error ? error.message : String(error)}`)
      return [name, undefined]
    }
  })
  if (problems.length > 0) throw new ConfigError(problems)
  return Object.freeze(Object.fromEntries(entries)) as Pick<Config, Name>
}

/** Names of all settings, for the commands that need everything. */
export const ALL_SETTINGS = Object.keys(SETTINGS) as (keyof Settings)[]
