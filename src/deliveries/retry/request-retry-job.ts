import type { DataSource } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { transactOnce, type IdempotentRequest } from '../../db/queries/idempotency.ts'
import { insertRetryJob, type RetryJobRow } from '../../db/queries/retry-jobs.ts'
import { type DeliverySelection, type RetryMode, selectionForAudit } from '../../domain/delivery-filter.ts'
import { newId } from '../../ids.ts'
import type { Logger } from '../../observability/logger.ts'
import type { RetryWorkflows } from '../../temporal/step-workflows.ts'
import { requireEnabled } from './preconditions.ts'

type Dependencies = { dataSource: DataSource; retryWorkflows: RetryWorkflows; logger: Logger }

/**
 * Creates a retry job and starts its workflow. The sweeper starts the workflow where this process fails to.
 * `webhookId` null: all enabled webhooks of the organisation.
 */
export async function requestRetryJob(
  { dataSource, retryWorkflows, logger }: Dependencies,
  actor: Actor,
  { mode, webhookId, selection }: { mode: RetryMode; webhookId: string | null; selection: DeliverySelection },
  idempotency: IdempotentRequest | null,
): Promise<RetryJobRow> {
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
  if (!replayed && job.state === 'running') {
    const jobId = job.id
    // Not awaited: the job is committed, and the answer does not depend on Temporal.
    retryWorkflows
      .start({ organisationId, jobId })
      .catch((error: unknown) =>
        logger.warn({ event: 'retry_job.start_failed', jobId, err: error }, 'retry_job.start_failed'),
      )
  }
  return job
}
