import type { Config } from '../../config/load.ts'
import { hasSharedSessions } from '../../db/queries/server-state.ts'
import { findOutbox, readFigures } from '../../relay/outbox.ts'
import { describeError } from '../../process/visible-text.ts'
import { defineCheck, type Check, ok, problem, type Finding, type DatabaseAccess } from './check.ts'

/** A relay publishes within seconds; a row that waits longer is held up. */
const MAX_AGE_S = 300

/** Checks the outbox in the platform's database, and the key that its rows are published with. */
export function relayChecks(config: Partial<Config>, access: DatabaseAccess): Check[] {
  return [
    defineCheck(config, {
      name: 'relay.outbox',
      settings: ['relayDatabaseUrl'],
      failure: 'relay.unreachable',
      run: ({ relayDatabaseUrl }) => checkOutbox(access, relayDatabaseUrl),
    }),
    defineCheck(config, {
      name: 'relay.key',
      settings: ['relayDatabaseUrl', 'relayOperatorKey', 'operatorKeys'],
      failure: 'settings.invalid',
      run: (given) => Promise.resolve(checkKey(given)),
    }),
  ]
}

async function checkOutbox(access: DatabaseAccess, databaseUrl: string): Promise<Finding[]> {
  if (databaseUrl === '') return []
  const { host, pathname } = new URL(databaseUrl)
  try {
    const db = await access.open({ databaseUrl, databasePooler: 'none' })
    const outbox = await findOutbox(db)
    if (outbox === null)
      return [problem('relay.outbox_missing', `no table posthorn_outbox (${host}${pathname})`)]
    const { missingRights } = outbox
    if (missingRights.length > 0)
      return [problem('relay.rights_missing', `posthorn_outbox: ${missingRights.join(', ')}`)]
    if (await hasSharedSessions(db))
      return [problem('relay.pooler_used', 'transactions of one connection get different sessions')]
    const { waiting, late, parked, oldestAge } = await readFigures(db)
    const seen = `${waiting} row(s) wait, the oldest for ${Math.round(oldestAge)} s, ${late} for over a day`
    const problems = [
      ...(oldestAge > MAX_AGE_S ? [problem('relay.rows_waiting', seen)] : []),
      ...(parked > 0 ? [problem('relay.rows_parked', `${parked} row(s) were refused`)] : []),
    ]
    return problems.length > 0 ? problems : [ok('relay.outbox', seen)]
  } catch (error) {
    return [problem('relay.unreachable', `${describeError(error)} (${host}${pathname})`)]
  }
}

function checkKey({
  relayDatabaseUrl,
  relayOperatorKey,
  operatorKeys,
}: Pick<Config, 'relayDatabaseUrl' | 'relayOperatorKey' | 'operatorKeys'>): Finding[] {
  if (relayDatabaseUrl === '' || relayOperatorKey === '') return []
  // Where the relay runs on a machine of its own, the keys of the API are not known.
  if (operatorKeys.length === 0) return [ok('relay.key', 'POSTHORN_OPERATOR_KEYS is not known here')]
  const key = operatorKeys.find(({ secret }) => secret === relayOperatorKey)
  if (key === undefined) return [problem('relay.key_refused', 'it is not in POSTHORN_OPERATOR_KEYS')]
  return key.scopes.includes('publish')
    ? [ok('relay.key', `the operator key ${key.name} may publish`)]
    : [problem('relay.key_refused', `the operator key ${key.name} lacks the scope publish`)]
}
