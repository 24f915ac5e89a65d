import packageJson from '../../../package.json' with { type: 'json' }
import type { Environment } from '../../config/load.ts'
import { createDatabaseAccess } from './database-access.ts'
import { databaseChecks } from './database-checks.ts'
import { deliveryChecks } from './delivery-checks.ts'
import { type Level, type Diagnosis, renderJson, renderText } from './finding.ts'
import { httpChecks, outboundChecks } from './http-checks.ts'
import { keyChecks } from './key-checks.ts'
import { notificationChecks } from './notification-checks.ts'
import { pausedChecks, recoveryChecks } from './recovery-checks.ts'
import { relayChecks } from './relay-checks.ts'
import { readSettings } from './read-settings.ts'
import { runChecks } from './run-checks.ts'
import { createTemporalAccess } from './temporal-access.ts'
import { temporalChecks } from './temporal-checks.ts'
import type { Arguments, Output } from '../command-line/command.ts'

/** `posthorn doctor`. Ends the process itself. */
export async function runDoctor({ given }: Arguments, { print }: Output): Promise<never> {
  const diagnosis = await diagnose(process.env)
  print(given.has('json') ? renderJson(diagnosis) : renderText(diagnosis))
  // The search for a host's address may go on for longer than its check.
  process.exit(diagnosis.status === 'error' ? 1 : 0)
}

/**
 * Examines the installation that these settings describe: settings, database, Temporal, keys, proxy, outbound policy,
 * mail, push, deliveries, incidents, retry jobs, erasures and the outbox. Changes nothing and sends nothing. Never
 * rejects for what it examines, and ends within 25 seconds.
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
      ...httpChecks(config),
      ...outboundChecks(config),
      ...notificationChecks(config),
      ...deliveryChecks(config, { database, temporal }),
      ...pausedChecks(config, database),
      ...recoveryChecks(config, { database, temporal }),
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
