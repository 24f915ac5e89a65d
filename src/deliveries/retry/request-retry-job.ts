import type { DataSource } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { transactOnce, type IdempotentRequest } from '../../db/queries/idempotency.ts'
import { insertRetryJob, type RetryJobRow } from '../../db/queries/retry-jobs.ts'
import { type DeliverySelection, type RetryMode, selectionForAudit } from '../../domain/delivery-filter.ts'
import { newId } from '../../ids.ts'
import type { Logger } from '../../observability/logger.ts'
import type { RetryWorkflows } from '../../temporal/job-workflows.ts'
import { requireEnabled } from './preconditions.ts'

type Dependencies = { dataSource: DataSource; retryWorkflows: RetryWorkflows; logger: Logger }

/**
 * Creates a retry job and starts its workflow. The sweeper starts the workflow where this process fails to.
 * `webhookId` null: all enabled webhooks of the organisation.
 */
export async function requestRetryJob(
  dependencies: Dependencies,
  actor: Actor,
  { mode, webhookId, selection }: { mode: RetryMode; webhookId: string | null; selection: DeliverySelection },
  idempotency: IdempotentRequest | null,
): Promise<RetryJobRow> {
  const { dataSource } = dependencies
  const { organisationId, memberId } = actor
  const { answer: job, replayed } = await transactOnce(dataSource, idempotency, async (db) => {
    if (webhookId !== null) await requireEnabled(db, organisationId, webhookId)
    const id = newId()
    const created = await insertRetryJob(db, {
      id,
      organisationId,
      webhookId,
      mode,
      selection,
      requestedBy: memberId,
    })
    const details = { jobId: id, mode, total: created.total, ...selectionForAudit(selection) }
    await recordAudit(db, actor, { action: 'deliveries.retried', webhookId, details })
    return created
  })
  if (!replayed && job.state === 'running') startJob(dependencies, { organisationId, jobId: job.id })
  return job
}

/** Starts the workflow of a committed job. It is not awaited: the answer does not depend on Temporal. */
export function startJob(
  { retryWorkflows, logger }: Pick<Dependencies, 'retryWorkflows' | 'logger'>,
  job: { organisationId: string; jobId: string },
): void {
  const { jobId } = job
  retryWorkflows
    .start(job)
    .catch((error: unknown) =>
      logger.warn({ event: 'retry_job.start_failed', jobId, err: error }, 'retry_job.start_failed'),
    )
}
