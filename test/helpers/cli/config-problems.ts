import { ConfigError, loadConfig, ALL_SETTINGS, type Environment } from '../../../src/config/load.ts'

/** Returns the problems that `loadConfig` finds in these settings; none where they are valid. */
export function problemsOf(env: Environment, names = ALL_SETTINGS): readonly string[] {
  try {
    loadConfig(env, names)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  throw new Error('the configuration was accepted')
}
