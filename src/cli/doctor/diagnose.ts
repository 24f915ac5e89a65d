import packageJson from '../../../package.json' with { type: 'json' }
import { type Environment, ALL_SETTINGS, ConfigError, loadConfig, type Config } from '../../config/load.ts'
import {
  createDatabaseAccess,
  createTemporalAccess,
  type Level,
  type Diagnosis,
  renderText,
  runChecks,
  ok,
  problem,
  type Finding,
} from './check.ts'
import { databaseChecks, keyChecks } from './database-checks.ts'
import { networkChecks, relayChecks } from './network-checks.ts'
import { workChecks } from './work-checks.ts'
import { temporalChecks } from './temporal-checks.ts'
import type { Arguments, Output } from '../command-line/command.ts'
import { loadCatalogue } from '../catalogue.ts'
import {
  BRAND_SETTINGS,
  CREDENTIAL_SETTINGS,
  readBrand,
  readTemporalCredentials,
} from '../../process/service-settings.ts'

/** `posthorn doctor`. Ends the process itself. */
export async function runDoctor({ given }: Arguments, { print }: Output): Promise<never> {
  const diagnosis = await diagnose(process.env)
  print(given.has('json') ? JSON.stringify(diagnosis, null, 2) : renderText(diagnosis))
  // The search for a host's address may go on for longer than its check.
  process.exit(diagnosis.status === 'error' ? 1 : 0)
}

/**
 * Examines the installation that these settings describe: settings, database, Temporal, keys, proxy, outbound policy,
 * mail, push, deliveries, incidents, retry jobs, erasures, retention and the outbox. Changes nothing and sends nothing.
 * Never rejects for what it examines, and ends within 25 seconds.
 */
export async function diagnose(env: Environment): Promise<Diagnosis> {
  const { config, findings: ofSettings } = await readSettings(env)
  const database = createDatabaseAccess()
  const platform = createDatabaseAccess()
  const temporal = createTemporalAccess()
  try {
    const found = await runChecks([
      ...databaseChecks(config, database),
      ...temporalChecks(config, temporal),
      ...keyChecks(config, database),
      ...networkChecks(config),
      ...workChecks(config, { database, temporal }),
      ...relayChecks(config, platform),
    ])
    const findings = [...ofSettings, ...found]
    const has = (wanted: Level): boolean => findings.some(({ level }) => level === wanted)
    const worst = has('warning') ? 'warning' : 'ok'
    return { status: has('error') ? 'error' : worst, version: packageJson.version, findings }
  } finally {
    await Promise.all([database.close(), platform.close(), temporal.close()])
  }
}

/** The settings that are valid, and a finding for each that is not. */
type ReadSettings = { config: Partial<Config>; findings: Finding[] }

/** Reads every setting by itself, and the files that settings name, so that one bad variable hides no other. */
async function readSettings(env: Environment): Promise<ReadSettings> {
  const config: Partial<Config> = {}
  const problems: string[] = []
  const collect = async (read: () => unknown, prefix = ''): Promise<void> => {
    try {
      await read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems.map((text) => prefix + text))
    }
  }
  for (const name of ALL_SETTINGS) await collect(() => Object.assign(config, loadConfig(env, [name])))
  const { catalogueFile } = config
  if (catalogueFile !== undefined) await collect(() => loadCatalogue(catalogueFile), 'POSTHORN_CATALOGUE: ')
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

function hasSettings<Name extends keyof Config>(
  config: Partial<Config>,
  names: readonly Name[],
): config is Partial<Config> & Pick<Config, Name> {
  return names.every((name) => config[name] !== undefined)
}
