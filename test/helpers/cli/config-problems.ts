import { ConfigError, loadConfig, ALL_SETTINGS, type Environment } from '../../../src/config.ts'

/** What `loadConfig` says of these settings; nothing where they are valid. */
export function problemsOf(env: Environment, names = ALL_SETTINGS): readonly string[] {
  try {
    loadConfig(env, names)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  throw new Error('the configuration was accepted')
}
