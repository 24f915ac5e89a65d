import type { Config } from '../../config/load.ts'
import { SETTINGS } from '../../config/settings.ts'
import type { Finding } from './finding.ts'
import type { ProblemCode } from './problems.ts'

/** One check, ready to run. */
export type Check = {
  /** Also the code of its finding where there is no problem. */
  name: string
  /** The names of earlier checks without which this one cannot run. */
  needs: readonly string[]
  /** The problem that an error or the time limit stands for. */
  failure: ProblemCode
  /** The variables that it needs and that are not valid. */
  badVariables: readonly string[]
  run(): Promise<Finding[]>
}

/** Defines a check that reads some settings. It is skipped where one of them is not valid. */
export function defineCheck<Name extends keyof Config = never>(
  config: Partial<Config>,
  definition: {
    name: string
    settings: readonly Name[]
    needs?: readonly string[]
    failure: ProblemCode
    run: (config: Pick<Config, Name>) => Promise<Finding[]>
  },
): Check {
  const { name, settings, needs = [], failure, run } = definition
  const bad = settings.filter((setting) => config[setting] === undefined)
  return {
    name,
    needs,
    failure,
    badVariables: bad.map((setting) => SETTINGS[setting].variable),
    // Complete where it runs: a check with a bad variable is skipped.
    run: () => run(config as Pick<Config, Name>),
  }
}
