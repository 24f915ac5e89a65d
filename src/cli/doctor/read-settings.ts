import { ALL_SETTINGS, ConfigError, loadConfig, type Config, type Environment } from '../../config/load.ts'
import { loadCatalogue } from '../catalogue-file.ts'
import { BRAND_SETTINGS, readBrand } from '../../process/brand.ts'
import { readTemporalCredentials } from '../../process/temporal-credentials.ts'
import { ok, problem, type Finding } from './finding.ts'

/** The settings that are valid, and a finding for each that is not. */
export type ReadSettings = { config: Partial<Config>; findings: Finding[] }

/** Reads every setting by itself, and the files that settings name, so that one bad variable hides no other. */
export async function readSettings(env: Environment): Promise<ReadSettings> {
  const config: Partial<Config> = {}
  const problems: string[] = []
  const collect = async (read: () => unknown): Promise<void> => {
    try {
      await read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
    }
  }
  for (const name of ALL_SETTINGS) await collect(() => Object.assign(config, loadConfig(env, [name])))
  const { catalogueFile } = config
  if (catalogueFile !== undefined) await collect(() => loadCatalogue(catalogueFile))
  await collect(() => {
    // Only its problems count here: the connection reads the files again.
    if (hasSettings(config, CREDENTIAL_SETTINGS)) readTemporalCredentials(config)
  })
  await collect(() => {
    if (hasSettings(config, BRAND_SETTINGS)) readBrand(config)
  })
  if (problems.length === 0)
    return { config, findings: [ok('settings.environment', `all ${ALL_SETTINGS.length} settings are valid`)] }
  return { config, findings: problems.map((text) => problem('settings.invalid', text)) }
}

export const CREDENTIAL_SETTINGS = [
  'temporalTlsCaFile',
  'temporalTlsCertFile',
  'temporalTlsKeyFile',
  'temporalApiKey',
] as const

function hasSettings<Name extends keyof Config>(
  config: Partial<Config>,
  names: readonly Name[],
): config is Partial<Config> & Pick<Config, Name> {
  return names.every((name) => config[name] !== undefined)
}
