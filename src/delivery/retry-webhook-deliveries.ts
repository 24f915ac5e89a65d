import { setTimeout as delay } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { DataSource } from 'typeorm'
import { askForNextRetries, findUnsettled } from '../db/queries/interventions.ts'
import { advanceRetryJob, findRetryProgress } from '../db/queries/retry-jobs.ts'
import type { Logger } from '../logger.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { untilDatabaseAnswers } from './patience.ts'
import { tellOfRetry } from './tell.ts'

export type RetryJobDependencies = {
  dataSource: DataSource
  workflows: Pick<DeliveryWorkflows, 'wake'>
  logger: Logger
  /** Deliveries of one webhook that a job has under way at once. */
  webhookConcurrency: number
}

export type RetryJobPart = { organisationId: string; jobId: string; webhookId: string }

/** How often the job looks which of its deliveries are through. */
const LOOK_EVERY_MS = 100

/** Workflows woken at once. */
const CONCURRENT_WAKES = 10

/**
 * Retries what a job covers of one webhook, at most `webhookConcurrency` deliveries under way at a time. Where it
 * stands is kept in the database, so that it goes on there after its worker was lost: a delivery whose retry was
 * asked for is attempted whether or not anybody waits for it here. Rejects when `signal` aborts.
 */
export async function retryWebhookDeliveries(
  dependencies: RetryJobDependencies,
  part: RetryJobPart,
  signal: AbortSignal,
): Promise<void> {
  const { dataSource, webhookConcurrency } = dependencies
  const { organisationId, jobId, webhookId } = part
  const begun = await untilDatabaseAnswers(
    () => findRetryProgress(dataSource, organisationId, jobId, webhookId),
    signal,
  )
  if (begun === null) return
  const limit = pLimit(CONCURRENT_WAKES)
  let { cursor, done } = begun
  let underWay: string[] = []
  let more = true

  while (more || underWay.length > 0) {
    signal.throwIfAborted()
    const room = webhookConcurrency - underWay.length
    if (more && room > 0) {
      const page = { organisationId, webhookId, jobId, mode: begun.mode, cursor, limit: room }
      const { asked, last } = await untilDatabaseAnswers(() => askForNextRetries(dataSource, page), signal)
      more = last !== null
      cursor = last
      underWay.push(...asked.map(({ deliveryId }) => deliveryId))
      await limit.map(asked, (delivery) => tellOfRetry(dependencies, part, delivery))
    }
    const before = underWay
    underWay = await untilDatabaseAnswers(() => findUnsettled(dataSource, organisationId, before), signal)
    done += before.length - underWay.length
    const reached = done
    await untilDatabaseAnswers(() => advanceRetryJob(dataSource, jobId, webhookId, reached), signal)
    if (underWay.length > webhookConcurrency / 2 || !more) await delay(LOOK_EVERY_MS, undefined, { signal })
  }
}
