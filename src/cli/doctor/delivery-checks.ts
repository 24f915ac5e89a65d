import { Client } from '@temporalio/client'
import type { DataSource } from 'typeorm'
import type { Config } from '../../config/load.ts'
import { findOwed } from '../../db/queries/recovery.ts'
import {
  countOverdue,
  countStuck,
  listStuckStarted,
  type OverdueDeliveries,
  type StuckReason,
} from '../../db/queries/stuck-deliveries.ts'
import { deliveryWorkflowId } from '../../temporal/delivery-workflows.ts'
import { readWorkflowProgress } from '../../temporal/workflow-progress.ts'
import { defineCheck, type Check } from './check.ts'
import type { DatabaseAccess } from './database-access.ts'
import { ok, problem, type Finding } from './finding.ts'
import type { ProblemCode } from './problems.ts'
import type { TemporalAccess } from './temporal-access.ts'
import { CONNECTION_SETTINGS } from './temporal-checks.ts'

/** Stuck deliveries whose workflow is examined. */
const SAMPLES = 20

const STUCK_PROBLEMS: Readonly<Record<StuckReason, ProblemCode>> = {
  unstarted: 'deliveries.unstarted',
  attempt_lost: 'deliveries.attempt_lost',
  unswept: 'deliveries.unswept',
}

/** Checks which deliveries are stuck, since when and why, and which wait for their endpoints. */
export function deliveryChecks(
  config: Partial<Config>,
  access: { database: DatabaseAccess; temporal: TemporalAccess },
): Check[] {
  const settings = ['databaseUrl', 'databasePooler'] as const
  const needs = ['database.connection', 'database.migrations']
  const failure = 'deliveries.check_failed'
  return [
    defineCheck(config, {
      name: 'deliveries.backlog',
      settings,
      needs,
      failure,
      run: async (given) => checkOverdue(await access.database.open(given)),
    }),
    defineCheck(config, {
      name: 'deliveries.recovery',
      settings,
      needs,
      failure,
      run: async (given) => checkStuck(await access.database.open(given)),
    }),
    defineCheck(config, {
      name: 'deliveries.following',
      settings,
      needs,
      failure,
      run: async (given) => checkOwed(await access.database.open(given)),
    }),
    defineCheck(config, {
      name: 'deliveries.workflows',
      settings: [...settings, ...CONNECTION_SETTINGS, 'temporalNamespace'],
      needs: [...needs, 'temporal.namespace'],
      failure,
      run: async (given) => {
        const connection = await access.temporal.open(given)
        const client = new Client({ connection, namespace: given.temporalNamespace })
        return checkWorkflows(await access.database.open(given), client)
      },
    }),
  ]
}

async function checkOverdue(db: DataSource): Promise<Finding[]> {
  const overdue = await countOverdue(db)
  return [stuckFinding(overdue), endpointFinding(overdue)]
}

function stuckFinding({ upToFiveMinutes, upToOneHour, longer, oldestDueAt }: OverdueDeliveries): Finding {
  if (oldestDueAt === null) return ok('deliveries.backlog', 'no delivery is stuck')
  const ages = [
    `${upToFiveMinutes} by up to five minutes`,
    `${upToOneHour} by up to an hour`,
    `${longer} by more than an hour`,
  ]
  const seen = `overdue: ${ages.join(', ')}; the oldest since ${oldestDueAt.toISOString()}`
  return problem('deliveries.overdue', seen)
}

/** A slow receiver is for its owner to solve: what waits for it is no problem of the installation. */
function endpointFinding({ busyFirstAttempts, oldestBusyFirstAt, busyRetries }: OverdueDeliveries): Finding {
  const since = oldestBusyFirstAt === null ? '' : `, the oldest since ${oldestBusyFirstAt.toISOString()}`
  const seen = `endpoints that hang or are slow hold ${busyFirstAttempts} first attempts${since}, and ${busyRetries} retries`
  const isNone = busyFirstAttempts + busyRetries === 0
  return ok('deliveries.endpoints', isNone ? 'no delivery waits for an endpoint that hangs or is slow' : seen)
}

async function checkStuck(db: DataSource): Promise<Finding[]> {
  const stuck = await countStuck(db)
  if (stuck.length === 0) return [ok('deliveries.recovery', 'no delivery waits for a sweeper')]
  return stuck.map(({ reason, count, oldestDueAt, example }) =>
    problem(
      STUCK_PROBLEMS[reason],
      `${count} delivery(s), the oldest due since ${oldestDueAt.toISOString()}, such as ${example}`,
    ),
  )
}

/** Workflows that follow come later under load, and hours later only where Temporal is too small for the rate. */
const OWED_TIMEOUT_MS = 3_600_000

async function checkOwed(db: DataSource): Promise<Finding[]> {
  const owed = await findOwed(db)
  if (owed === null) return [ok('deliveries.following', 'every delivery that is to have a workflow has one')]
  const seen = `${owed.count} delivery(s) are owed a workflow, the oldest since ${owed.since.toISOString()}`
  const isLate = Date.now() - owed.since.getTime() > OWED_TIMEOUT_MS
  return [isLate ? problem('deliveries.workflows_owed', seen) : ok('deliveries.following', seen)]
}

async function checkWorkflows(db: DataSource, client: Client): Promise<Finding[]> {
  const ids = await listStuckStarted(db, SAMPLES)
  const found = await Promise.all(
    ids.map(async (id) => ({ id, progress: await readWorkflowProgress(client, deliveryWorkflowId(id)) })),
  )
  const gone = found.filter(({ progress }) => progress.state === 'gone').map(({ id }) => id)
  const stuck = found.flatMap(({ id, progress }) =>
    progress.state === 'stuck' ? [`${id} (${progress.cause})`] : [],
  )
  const of = `of ${ids.length} stuck that were examined`
  const problems = [
    ...nameProblem('deliveries.workflow_gone', gone, `no workflow runs for ${gone.length} ${of}`),
    ...nameProblem(
      'deliveries.workflow_stuck',
      stuck,
      `the workflow fails repeatedly for ${stuck.length} ${of}`,
    ),
  ]
  if (problems.length > 0) return problems
  const all = found.some(({ progress }) => progress.state === 'paused') ? 'run or are paused' : 'run'
  return [ok('deliveries.workflows', ids.length === 0 ? 'none had to be examined' : `all ${of} ${all}`)]
}

/** Shows one of the deliveries. */
function nameProblem(code: ProblemCode, ids: readonly string[], seen: string): Finding[] {
  const [example] = ids
  return example === undefined ? [] : [problem(code, `${seen}, such as ${example}`)]
}
