import pLimit from 'p-limit'
import type { DataSource, EntityManager } from 'typeorm'
import { askForNextRetries, findAskedAttempts, type AskedDelivery } from '../../db/queries/interventions.ts'
import {
  finishRetryJob,
  listUnfinishedWebhooks,
  lockRetryPart,
  updateRetryPart,
} from '../../db/queries/retry-jobs.ts'
import type { Logger } from '../../logger.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import { untilDatabaseAnswers } from '../../db/patience.ts'
import { wakeWorkflows } from './wake-workflows.ts'
import { transactOnWebhook, type WebhookLocks } from '../../incidents/webhook-locks.ts'

export type RetryJobDependencies = {
  dataSource: DataSource
  locks: Pick<WebhookLocks, 'commands'>
  workflows: Pick<DeliveryWorkflows, 'wake'>
  logger: Logger
  /** Deliveries of one webhook that a job has in flight at once. */
  webhookConcurrency: number
}

type JobIds = { organisationId: string; jobId: string }

/** Webhooks looked at side by side. */
const CONCURRENT_WEBHOOKS = 4

/**
 * One step of a retry job: sees which of its deliveries are through and asks for the next ones, so that of each
 * webhook at most `webhookConcurrency` are in flight. It waits for no attempt; the caller takes a step again a little
 * later. Where the job stands is kept in the database, and every place is moved under its lock: a step that is made
 * twice, or by two workers at once, takes no delivery twice.
 */
export async function advanceRetryJob(
  dependencies: RetryJobDependencies,
  job: JobIds,
  signal: AbortSignal,
): Promise<{ running: boolean; moved: boolean }> {
  const { dataSource } = dependencies
  const limit = pLimit(CONCURRENT_WEBHOOKS)
  const { organisationId, jobId } = job
  const webhookIds = await untilDatabaseAnswers(
    () => listUnfinishedWebhooks(dataSource, organisationId, jobId),
    signal,
  )
  const steps = await limit.map(webhookIds, (webhookId) =>
    advanceWebhook(dependencies, { ...job, webhookId }, signal),
  )
  const running = steps.some(({ finished }) => !finished)
  if (!running) await untilDatabaseAnswers(() => finishRetryJob(dataSource, organisationId, jobId), signal)
  return { running, moved: steps.some(({ moved }) => moved) }
}

type Step = { asked: AskedDelivery[]; finished: boolean; moved: boolean }

async function advanceWebhook(
  dependencies: RetryJobDependencies,
  part: JobIds & { webhookId: string },
  signal: AbortSignal,
): Promise<Step> {
  const { webhookConcurrency } = dependencies
  const step = await untilDatabaseAnswers(
    () =>
      transactOnWebhook(dependencies, part.webhookId, (manager) =>
        takeStep(manager, part, webhookConcurrency),
      ),
    signal,
  )
  await wakeWorkflows(dependencies, part, step.asked)
  return step
}

async function takeStep(
  manager: EntityManager,
  part: JobIds & { webhookId: string },
  webhookConcurrency: number,
): Promise<Step> {
  const place = await lockRetryPart(manager, part)
  if (place === null) return { asked: [], finished: true, moved: false }
  const { done, succeeded, failed, cursor } = place
  const asked = await findAskedAttempts(manager, part.organisationId, place.underWay)
  const count = (outcome: (typeof asked)[number]['outcome']): number =>
    asked.filter((attempt) => attempt.outcome === outcome).length
  const open = asked.filter(({ outcome }) => outcome === 'under_way')
  const ended = asked.length - open.length
  const limit = webhookConcurrency - open.length
  const next =
    limit > 0
      ? await askForNextRetries(manager, { ...part, mode: place.mode, cursor, limit })
      : { asked: [], last: cursor }
  const begun = next.asked.map(({ deliveryId, attempts }) => ({ deliveryId, number: attempts + 1 }))
  const underWay = [...open.map(({ deliveryId, number }) => ({ deliveryId, number })), ...begun]
  const finished = next.last === null && underWay.length === 0
  await updateRetryPart(manager, part, {
    done: done + ended,
    succeeded: succeeded + count('succeeded'),
    failed: failed + count('failed'),
    cursor: next.last ?? cursor,
    underWay,
    finished,
  })
  return { asked: next.asked, finished, moved: begun.length > 0 || ended > 0 }
}
