import { readFileSync } from 'node:fs'
import { SETTINGS } from './settings.ts'

type Settings = typeof SETTINGS

/** Every setting, read once at start and frozen. Units stand in the names. */
export type Config = { readonly [Name in keyof Settings]: ReturnType<Settings[Name]['parse']> }

export type Environment = Readonly<Record<string, string | undefined>>

/** Thrown with every problem of the environment, or of a file that was given, at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[], what = 'The configuration') {
    super(`${what} is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

/**
 * Reads settings from the environment; `names` limits it to those that a command needs.
 * An empty variable counts as not set. A secret may lie in a file: `DATABASE_URL_FILE` names it.
 * Throws ConfigError naming every bad variable; no value is repeated there, it might be a secret.
 */
export function loadConfig<Name extends keyof Settings>(
  env: Environment,
  names: readonly Name[],
): Pick<Config, Name> {
  const problems: string[] = []
  const entries = names.map((name) => {
    const setting = SETTINGS[name]
    try {
      const text = givenText(env, setting) ?? setting.fallback
      if (text === undefined) throw new Error(`is not set: ${setting.description}`)
      return [name, setting.parse(text)]
    } catch (error) {
      problems.push(`${setting.variable} ${error instanceof Error ? error.message : String(error)}`)
      return [name, undefined]
    }
  })
  if (problems.length > 0) throw new ConfigError(problems)
  return Object.freeze(Object.fromEntries(entries)) as Pick<Config, Name>
}

/** Returns the text of a setting; undefined where it is not set. Throws why a file cannot be read. */
function givenText(env: Environment, { variable, isSecret }: Settings[keyof Settings]): string | undefined {
  const given = trimmed(env[variable])
  const file = isSecret ? trimmed(env[`${variable}_FILE`]) : undefined
  if (file === undefined) return given
  if (given !== undefined) throw new Error(`is set, and so is ${variable}_FILE: one of them is enough`)
  try {
    return trimmed(readFileSync(file, 'utf8'))
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException
    throw new Error(`cannot be read from the file that ${variable}_FILE names (${code})`, { cause: error })
  }
}

function trimmed(text: string | undefined): string | undefined {
  const found = text?.trim()
  return found === '' ? undefined : found
}

/** Names of all settings, for the commands that need everything. */
export const ALL_SETTINGS = Object.keys(SETTINGS) as (keyof Settings)[]
