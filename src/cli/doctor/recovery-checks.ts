import { Client } from '@temporalio/client'
import type { DataSource } from 'typeorm'
import type { Config } from '../../config/load.ts'
import {
  countJobsWithoutProgress,
  countOverdueIncidents,
  countStuckNotifications,
  countUnsweptErasures,
  countUnsweptJobs,
  listErasures,
  listRunningJobs,
  type StuckRows,
} from '../../db/queries/stuck-work.ts'
import { erasureWorkflowId, retryWorkflowId } from '../../temporal/job-workflows.ts'
import { countActivityFailures, readWorkflowProgress } from '../../temporal/workflow-progress.ts'
import { defineCheck, type Check } from './check.ts'
import type { DatabaseAccess } from './database-access.ts'
import { ok, problem, type Finding } from './finding.ts'
import type { ProblemCode } from './problems.ts'
import type { TemporalAccess } from './temporal-access.ts'
import { CONNECTION_SETTINGS } from './temporal-checks.ts'
import { findPaused } from '../../db/queries/stuck-deliveries.ts'

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

/** Retry jobs and erasures whose workflow is examined, of each. */
const SAMPLES = 20

type Count = { what: string; code: ProblemCode; count: (db: DataSource) => Promise<StuckRows | null> }

const INCIDENT_COUNTS: readonly Count[] = [
  { what: 'incident', code: 'incidents.overdue', count: countOverdueIncidents },
  { what: 'notification', code: 'incidents.notifications_stuck', count: countStuckNotifications },
]
const JOB_COUNTS: readonly Count[] = [
  { what: 'retry job', code: 'retry_jobs.unswept', count: countUnsweptJobs },
  { what: 'retry job', code: 'retry_jobs.no_progress', count: countJobsWithoutProgress },
]
const ERASURE_COUNTS: readonly Count[] = [
  { what: 'erasure', code: 'erasures.unswept', count: countUnsweptErasures },
]

type Workflows = {
  name: 'retry_jobs' | 'erasures'
  list: (db: DataSource, limit: number) => Promise<string[]>
  workflowIdOf: (id: string) => string
}

/** Checks that incidents, notifications, retry jobs and erasures make progress. */
export function recoveryChecks(
  config: Partial<Config>,
  access: { database: DatabaseAccess; temporal: TemporalAccess },
): Check[] {
  const settings = ['databaseUrl', 'databasePooler'] as const
  const needs = ['database.connection', 'database.migrations']
  const progressCheck = (area: string, counts: readonly Count[]): Check =>
    defineCheck(config, {
      name: `${area}.progress`,
      settings,
      needs,
      failure: 'database.check_failed',
      run: async (given) => checkProgress(await access.database.open(given), `${area}.progress`, counts),
    })
  const workflowCheck = (workflows: Workflows): Check =>
    defineCheck(config, {
      name: `${workflows.name}.workflows`,
      settings: [...settings, ...CONNECTION_SETTINGS, 'temporalNamespace'],
      needs: [...needs, 'temporal.namespace'],
      failure: 'temporal.check_failed',
      run: async (given) => {
        const connection = await access.temporal.open(given)
        const client = new Client({ connection, namespace: given.temporalNamespace })
        return checkWorkflows(await access.database.open(given), client, workflows)
      },
    })
  return [
    progressCheck('incidents', INCIDENT_COUNTS),
    progressCheck('retry_jobs', JOB_COUNTS),
    workflowCheck({ name: 'retry_jobs', list: listRunningJobs, workflowIdOf: retryWorkflowId }),
    progressCheck('erasures', ERASURE_COUNTS),
    workflowCheck({ name: 'erasures', list: listErasures, workflowIdOf: erasureWorkflowId }),
  ]
}

async function checkProgress(db: DataSource, name: string, counts: readonly Count[]): Promise<Finding[]> {
  const counted = await Promise.all(counts.map(async (each) => ({ ...each, stuck: await each.count(db) })))
  const problems = counted.flatMap(({ what, code, stuck }) => {
    if (stuck === null) return []
    const { count, since, example } = stuck
    return [problem(code, `${count} ${what}(s), the oldest since ${since.toISOString()}, such as ${example}`)]
  })
  return problems.length > 0 ? problems : [ok(name, 'all make progress')]
}

async function checkWorkflows(
  db: DataSource,
  client: Client,
  { name, list, workflowIdOf }: Workflows,
): Promise<Finding[]> {
  const ids = await list(db, SAMPLES)
  const found = await Promise.all(
    ids.map(async (id) => ({ id, ...(await examine(client, workflowIdOf(id))) })),
  )
  const of = `of ${ids.length} that were examined`
  const gone = found.filter(({ isGone }) => isGone)
  const stuck = found.flatMap(({ id, cause }) => (cause === null ? [] : [`${id} (${cause})`]))
  const problems = [
    ...(gone[0] === undefined
      ? []
      : [
          problem(
            `${name}.workflow_gone`,
            `no workflow runs for ${gone.length} ${of}, such as ${gone[0].id}`,
          ),
        ]),
    ...(stuck[0] === undefined
      ? []
      : [
          problem(
            `${name}.workflow_stuck`,
            `fails repeatedly for ${stuck.length} ${of}, such as ${stuck[0]}`,
          ),
        ]),
  ]
  if (problems.length > 0) return problems
  return [ok(`${name}.workflows`, ids.length === 0 ? 'none had to be examined' : `all ${of} run`)]
}

/** `cause`: why the workflow fails repeatedly; null where it does not. */
async function examine(
  client: Client,
  workflowId: string,
): Promise<{ isGone: boolean; cause: string | null }> {
  const progress = await readWorkflowProgress(client, workflowId)
  if (progress.state === 'gone') return { isGone: true, cause: null }
  if (progress.state === 'stuck') return { isGone: false, cause: progress.cause }
  const failures = await countActivityFailures(client, workflowId)
  return { isGone: false, cause: failures === 0 ? null : `its activity failed ${failures} times in a row` }
}
