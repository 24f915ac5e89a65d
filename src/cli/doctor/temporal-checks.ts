import { hasGrpcCode, isAccessRefused, isNotPermitted } from '../../temporal/calls.ts'
import type { Connection } from '@temporalio/client'
import type { Config } from '../../config/load.ts'
import { findSearchAttributeProblems, readNamespaceId, mayWrite } from '../../temporal/namespace.ts'
import { readTaskQueues, type TaskQueueState } from '../../temporal/task-queue-state.ts'
import { describeError } from '../../process/visible-text.ts'
import { defineCheck, ok, problem, problemsOr } from './check.ts'
import type { Check, Finding, TemporalAccess } from './check.ts'
import { CREDENTIAL_SETTINGS } from '../../process/service-settings.ts'

export const CONNECTION_SETTINGS = ['temporalAddress', ...CREDENTIAL_SETTINGS] as const

const SETTINGS = [...CONNECTION_SETTINGS, 'temporalNamespace', 'temporalTaskQueue'] as const

type Namespace = { namespace: string; taskQueue: string }

/** Checks Temporal: reach, namespace, search attributes, rights, workers and what waits for them. */
export function temporalChecks(config: Partial<Config>, access: TemporalAccess): Check[] {
  const inTemporal = (
    name: string,
    needs: string,
    run: (connection: Connection, named: Namespace) => Promise<Finding[]>,
  ): Check =>
    defineCheck(config, {
      name,
      settings: SETTINGS,
      needs: [needs],
      failure: 'temporal.check_failed',
      run: async (given) =>
        run(await access.open(given), {
          namespace: given.temporalNamespace,
          taskQueue: given.temporalTaskQueue,
        }),
    })
  return [
    defineCheck(config, {
      name: 'temporal.connection',
      settings: CONNECTION_SETTINGS,
      failure: 'temporal.unreachable',
      run: (given) => checkConnection(access, given),
    }),
    inTemporal('temporal.namespace', 'temporal.connection', checkNamespace),
    inTemporal('temporal.search_attributes', 'temporal.namespace', checkSearchAttributes),
    inTemporal('temporal.rights', 'temporal.namespace', checkRights),
    inTemporal('temporal.workers', 'temporal.namespace', async (connection, named) => {
      const queues = await readTaskQueues(connection, named)
      return [...workerFindings(queues), ...buildFindings(queues), ...backlogFindings(queues)]
    }),
  ]
}

async function checkConnection(
  access: TemporalAccess,
  config: Pick<Config, (typeof CONNECTION_SETTINGS)[number]>,
): Promise<Finding[]> {
  const address = config.temporalAddress
  try {
    const connection = await access.open(config)
    const { serverVersion } = await connection.workflowService.getSystemInfo({})
    return [ok('temporal.connection', `Temporal ${serverVersion} answers at ${address}`)]
  } catch (error) {
    const code = isAccessRefused(error) ? 'temporal.access_refused' : 'temporal.unreachable'
    const reason = error instanceof Error ? (error.cause ?? error) : error
    return [problem(code, `${describeError(reason)} (${address})`)]
  }
}

async function checkNamespace(connection: Connection, { namespace }: Namespace): Promise<Finding[]> {
  try {
    const id = await readNamespaceId(connection, namespace)
    return [
      id === ''
        ? problem('temporal.namespace_unreadable', `the namespace ${namespace} may not be described`)
        : ok('temporal.namespace', `the namespace ${namespace} exists`),
    ]
  } catch (error) {
    if (hasGrpcCode(error, 'NOT_FOUND'))
      return [problem('temporal.namespace_missing', `there is no namespace ${namespace}`)]
    if (isAccessRefused(error)) return [problem('temporal.access_refused', describeError(error))]
    throw error
  }
}

async function checkSearchAttributes(connection: Connection, { namespace }: Namespace): Promise<Finding[]> {
  try {
    const { missing, mistyped } = await findSearchAttributeProblems(connection, namespace)
    return problemsOr(ok('temporal.search_attributes', 'all search attributes are registered'), [
      missing.length > 0 && problem('temporal.search_attributes_missing', `missing: ${missing.join(', ')}`),
      mistyped.length > 0 &&
        problem('temporal.search_attributes_mistyped', `not of type Keyword: ${mistyped.join(', ')}`),
    ])
  } catch (error) {
    if (!isNotPermitted(error)) throw error
    return [problem('temporal.search_attributes_unreadable', describeError(error))]
  }
}

async function checkRights(connection: Connection, { namespace }: Namespace): Promise<Finding[]> {
  return (await mayWrite(connection, namespace))
    ? [ok('temporal.rights', `Posthorn may write in the namespace ${namespace}`)]
    : [problem('temporal.rights_missing', `Posthorn may not write in the namespace ${namespace}`)]
}

/** Tasks that have waited longer than this mean that there are too few workers. */
const OLD_BACKLOG_MS = 60_000

/** Names each task queue without a worker. */
function workerFindings(queues: readonly TaskQueueState[]): Finding[] {
  const missing = queues.filter(({ workers }) => workers.length === 0)
  if (missing.length > 0) {
    const names = missing.map(nameOf).join(', ')
    return [problem('temporal.worker_missing', `no worker polls for ${names}`)]
  }
  const described = queues.map((queue) => `${nameOf(queue)}: ${queue.workers.length}`).join(', ')
  const source = queues.every(({ hasHeartbeats }) => hasHeartbeats) ? 'send heartbeats' : 'poll'
  return [ok('temporal.workers', `workers that ${source} for ${described}`)]
}

/** Names the builds of the workers, and whether those of one task queue differ. */
export function buildFindings(queues: readonly TaskQueueState[]): Finding[] {
  const withBuilds = queues.map((queue) => ({ queue, builds: buildsOf(queue) }))
  const differing = withBuilds.filter(({ builds }) => builds.length > 1)
  const describe = (all: typeof withBuilds): string =>
    all.map(({ queue, builds }) => `${nameOf(queue)}: ${builds.join(', ')}`).join('; ')
  if (differing.length > 0) return [problem('temporal.workers_differ', describe(differing))]
  const known = withBuilds.filter(({ builds }) => builds.length > 0)
  return known.length === 0 ? [] : [ok('temporal.builds', describe(known))]
}

/** Names what waits for workers, and whether it has waited for too long. */
export function backlogFindings(queues: readonly TaskQueueState[]): Finding[] {
  const waiting = queues.filter(({ backlog }) => backlog > 0)
  const seen = waiting
    .map(
      (queue) => `${nameOf(queue)}: ${queue.backlog}, the oldest ${Math.round(queue.backlogAgeMs / 1_000)} s`,
    )
    .join('; ')
  if (waiting.some(({ backlogAgeMs }) => backlogAgeMs > OLD_BACKLOG_MS))
    return [problem('temporal.backlog_old', seen)]
  return [ok('temporal.backlog', seen === '' ? 'no task waits for a worker' : seen)]
}

function nameOf({ taskQueue, taskType }: TaskQueueState): string {
  return `${taskQueue} (${taskType})`
}

function buildsOf({ workers }: TaskQueueState): string[] {
  return [...new Set(workers.flatMap(({ buildId }) => buildId ?? []))].sort()
}
