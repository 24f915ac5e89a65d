import type { TaskQueueState } from '../../temporal/task-queue-state.ts'
import { ok, problem, type Finding } from './finding.ts'

/** Tasks that have waited longer than this mean that there are too few workers. */
const OLD_BACKLOG_MS = 60_000

/** Names each task queue without a worker. */
export function workerFindings(queues: readonly TaskQueueState[]): Finding[] {
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
