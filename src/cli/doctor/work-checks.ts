import { Client } from '@temporalio/client'
import type { DataSource } from 'typeorm'
import type { Config } from '../../config/load.ts'
import { findOwed } from '../../db/queries/due-deliveries.ts'
import { findUnpurged } from '../../db/queries/retention.ts'
import type { PurgeInput } from '../../domain/workflow-inputs.ts'
import {
  countOverdue,
  countStuck,
  findPaused,
  listStuckStarted,
  type StuckReason,
  countJobsWithoutProgress,
  countOverdueIncidents,
  countStuckNotifications,
  countUnsweptErasures,
  countUnsweptJobs,
  listErasures,
  listRunningJobs,
  type StuckRows,
} from '../../db/queries/stuck-work.ts'
import { deliveryWorkflowId, erasureWorkflowId, retryWorkflowId } from '../../temporal/workflows.ts'
import { countActivityFailures, readWorkflowProgress } from '../../temporal/workflow-progress.ts'
import { describeError } from '../../process/visible-text.ts'
import { defineCheck, ok, problem, problemsOr } from './check.ts'
import type { Check, DatabaseAccess, Finding, TemporalAccess } from './check.ts'
import type { ProblemCode } from './problems.ts'
import { CONNECTION_SETTINGS } from './temporal-checks.ts'

const SETTINGS = ['databaseUrl', 'databasePooler'] as const
const NEEDS = ['database.connection', 'database.migrations']

/** Checks that deliveries, incidents, notifications, retry jobs, erasures and retention make progress. */
export function workChecks(
  config: Partial<Config>,
  access: { database: DatabaseAccess; temporal: TemporalAccess },
): Check[] {
  const inDatabase = (
    name: string,
    failure: ProblemCode,
    run: (db: DataSource, name: string) => Promise<Finding[]>,
  ): Check =>
    defineCheck(config, {
      name,
      settings: SETTINGS,
      needs: NEEDS,
      failure,
      run: async (given) => run(await access.database.open(given), name),
    })
  const ofWorkflows = (workflows: Workflows): Check => {
    const { area, list } = workflows
    const name = `${area}.workflows`
    return defineCheck(config, {
      name,
      settings: [...SETTINGS, ...CONNECTION_SETTINGS, 'temporalNamespace'],
      needs: [...NEEDS, 'temporal.namespace'],
      failure: 'temporal.check_failed',
      run: async (given) => {
        let ids: string[]
        try {
          ids = await list(await access.database.open(given), SAMPLES)
        } catch (error) {
          return [problem('database.check_failed', `${name}: ${describeError(error)}`)]
        }
        const connection = await access.temporal.open(given)
        const client = new Client({ connection, namespace: given.temporalNamespace })
        return checkWorkflows(ids, client, workflows)
      },
    })
  }
  const ofProgress = (area: string, counts: readonly Count[]): Check =>
    inDatabase(`${area}.progress`, 'database.check_failed', (db, name) => checkProgress(db, name, counts))
  return [
    inDatabase('deliveries.backlog', 'deliveries.check_failed', checkOverdue),
    inDatabase('deliveries.recovery', 'deliveries.check_failed', checkStuck),
    inDatabase('deliveries.following', 'deliveries.check_failed', checkOwed),
    ofWorkflows(STUCK_DELIVERIES),
    inDatabase('deliveries.unpaused', 'deliveries.check_failed', checkPaused),
    ofProgress('incidents', INCIDENT_COUNTS),
    ofProgress('retry_jobs', JOB_COUNTS),
    ofWorkflows(RETRY_JOBS),
    ofProgress('erasures', ERASURE_COUNTS),
    ofWorkflows(ERASURES),
    defineCheck(config, {
      name: 'retention.progress',
      settings: [...SETTINGS, 'retentionCompletedDays', 'retentionFailedDays'],
      needs: NEEDS,
      failure: 'deliveries.check_failed',
      run: async ({ retentionCompletedDays: completedDays, retentionFailedDays: failedDays, ...given }) =>
        checkRetention(await access.database.open(given), { completedDays, failedDays }),
    }),
  ]
}

/** A slow receiver is for its owner to solve: what waits for it is no problem of the installation. */
async function checkOverdue(db: DataSource): Promise<Finding[]> {
  const { upToFiveMinutes, upToOneHour, longer, oldestDueAt, ...busy } = await countOverdue(db)
  const { busyFirstAttempts, oldestBusyFirstAt, busyRetries } = busy
  const ages = `${upToFiveMinutes} by up to five minutes, ${upToOneHour} by up to an hour, ${longer} by more than an hour`
  const since = oldestBusyFirstAt === null ? '' : `, the oldest since ${oldestBusyFirstAt.toISOString()}`
  return [
    oldestDueAt === null
      ? ok('deliveries.backlog', 'no delivery is stuck')
      : problem('deliveries.overdue', `overdue: ${ages}; the oldest since ${oldestDueAt.toISOString()}`),
    ok(
      'deliveries.endpoints',
      busyFirstAttempts + busyRetries === 0
        ? 'no delivery waits for an endpoint that hangs or is slow'
        : `endpoints that hang or are slow hold ${busyFirstAttempts} first attempts${since}, and ${busyRetries} retries`,
    ),
  ]
}

const STUCK_PROBLEMS: Readonly<Record<StuckReason, ProblemCode>> = {
  unstarted: 'deliveries.unstarted',
  attempt_lost: 'deliveries.attempt_lost',
  unswept: 'deliveries.unswept',
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

/** Names the deliveries that wait because an operator paused their workflow in Temporal. */
async function checkPaused(db: DataSource): Promise<Finding[]> {
  const paused = await findPaused(db)
  if (paused === null) return [ok('deliveries.unpaused', 'no overdue delivery is paused in Temporal')]
  const { count, since, oldestDueAt, example } = paused
  const seen = `${count} overdue delivery(s) are paused in Temporal, the first since ${since.toISOString()}`
  const due = `the oldest due since ${oldestDueAt.toISOString()}, such as ${example}`
  return [problem('deliveries.paused', `${seen}; ${due}`)]
}

/** A run that fails is no problem: those of the day after it delete the same. */
async function checkRetention(db: DataSource, limits: Omit<PurgeInput, 'auditDays'>): Promise<Finding[]> {
  const late = await findUnpurged(db, limits)
  if (late === null) return [ok('retention.progress', 'no delivery is past its limit for a day or longer')]
  const { state, completedAt, days } = late
  const seen = `a delivery ${state} at ${completedAt.toISOString()} is still there, past its limit of ${days} days`
  return [problem('retention.late', seen)]
}

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

async function checkProgress(db: DataSource, name: string, counts: readonly Count[]): Promise<Finding[]> {
  const counted = await Promise.all(counts.map(async (each) => ({ ...each, stuck: await each.count(db) })))
  const problems = counted.flatMap(({ what, code, stuck }) => {
    if (stuck === null) return []
    const { count, since, example } = stuck
    return [problem(code, `${count} ${what}(s), the oldest since ${since.toISOString()}, such as ${example}`)]
  })
  return problemsOr(ok(name, 'all make progress'), problems)
}

/** The workflows of an area that are examined. */
type Workflows = {
  area: 'deliveries' | 'retry_jobs' | 'erasures'
  list: (db: DataSource, limit: number) => Promise<string[]>
  workflowIdOf: (id: string) => string
  /** Its activity throws only for a fault of ours; the attempts of deliveries are repeated by their workflow. */
  countsFailures: boolean
}

const STUCK_DELIVERIES: Workflows = {
  area: 'deliveries',
  list: listStuckStarted,
  workflowIdOf: deliveryWorkflowId,
  countsFailures: false,
}
const RETRY_JOBS: Workflows = {
  area: 'retry_jobs',
  list: listRunningJobs,
  workflowIdOf: retryWorkflowId,
  countsFailures: true,
}
const ERASURES: Workflows = {
  area: 'erasures',
  list: listErasures,
  workflowIdOf: erasureWorkflowId,
  countsFailures: true,
}

/** Rows of an area whose workflow is examined. */
const SAMPLES = 20

async function checkWorkflows(ids: string[], client: Client, workflows: Workflows): Promise<Finding[]> {
  const { area } = workflows
  const found = await Promise.all(ids.map((id) => examine(client, id, workflows)))
  const of = `of ${ids.length} that were examined`
  const inState = (wanted: string): string[] =>
    found.flatMap(({ state, seen }) => (state === wanted ? [seen] : []))
  const [gone, stuck] = [inState('gone'), inState('stuck')]
  const all = found.some(({ state }) => state === 'paused') ? 'run or are paused' : 'run'
  const fine = ids.length === 0 ? 'none had to be examined' : `all ${of} ${all}`
  return problemsOr(ok(`${area}.workflows`, fine), [
    gone[0] !== undefined &&
      problem(`${area}.workflow_gone`, `no workflow runs for ${gone.length} ${of}, such as ${gone[0]}`),
    stuck[0] !== undefined &&
      problem(`${area}.workflow_stuck`, `fails repeatedly for ${stuck.length} ${of}, such as ${stuck[0]}`),
  ])
}

/** `seen`: the id, and why its workflow fails repeatedly. */
async function examine(
  client: Client,
  id: string,
  { workflowIdOf, countsFailures }: Workflows,
): Promise<{ state: string; seen: string }> {
  const progress = await readWorkflowProgress(client, workflowIdOf(id))
  if (progress.state === 'stuck') return { state: 'stuck', seen: `${id} (${progress.cause})` }
  if (progress.state === 'gone' || !countsFailures) return { state: progress.state, seen: id }
  const failures = await countActivityFailures(client, workflowIdOf(id))
  if (failures === 0) return { state: progress.state, seen: id }
  return { state: 'stuck', seen: `${id} (its activity failed ${failures} times in a row)` }
}
