import type { DataSource } from 'typeorm'
import type { Config } from '../../config/load.ts'
import { findPaused } from '../../db/queries/paused-deliveries.ts'
import { defineCheck, type Check } from './check.ts'
import type { DatabaseAccess } from './database-access.ts'
import { ok, problem, type Finding } from './finding.ts'

/** Checks which deliveries wait because an operator paused their workflow in Temporal. */
export function pausedChecks(config: Partial<Config>, database: DatabaseAccess): Check[] {
  return [
    defineCheck(config, {
      name: 'deliveries.unpaused',
      settings: ['databaseUrl', 'databasePooler'],
      needs: ['database.connection', 'database.migrations'],
      failure: 'deliveries.check_failed',
      run: async (given) => checkPaused(await database.open(given)),
    }),
  ]
}

async function checkPaused(db: DataSource): Promise<Finding[]> {
  const paused = await findPaused(db)
  if (paused === null) return [ok('deliveries.unpaused', 'no overdue delivery is paused in Temporal')]
  const { count, since, oldestDueAt, example } = paused
  const seen = `${count} overdue delivery(s) are paused in Temporal, the first since ${since.toISOString()}`
  const due = `the oldest due since ${oldestDueAt.toISOString()}, such as ${example}`
  return [problem('deliveries.paused', `${seen}; ${due}`)]
}
