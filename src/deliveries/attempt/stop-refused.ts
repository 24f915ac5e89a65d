import type { DataSource } from 'typeorm'
import { transactOnWebhook, type WebhookLocks } from '../../webhooks/webhook-locks.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { stopUnwanted } from '../protocol/change-deliveries.ts'

export type StopDependencies = {
  dataSource: DataSource
  locks: WebhookLocks
  metrics: Pick<Metrics, 'deliveriesStopped'>
}

/** Stops the deliveries that a webhook does not take, under its lock: a claim of one of them was refused. */
export async function stopRefused(
  dependencies: StopDependencies,
  { organisationId, webhookId }: { organisationId: string; webhookId: string },
): Promise<void> {
  const stopped = await transactOnWebhook(dependencies, webhookId, (manager) =>
    stopUnwanted(manager, { organisationId, webhookId }),
  )
  dependencies.metrics.deliveriesStopped(stopped)
}
