import { WorkflowIdReusePolicy, type Client } from '@temporalio/client'
import type { RetryDeliveriesInput } from '../domain/workflow-inputs.ts'
import { startOnce } from './calls.ts'
import { searchAttributes } from './search-attributes.ts'

/** Starts the workflows of retry jobs. */
export type RetryWorkflows = {
  /** Starts `retry-deliveries/<jobId>`; one that runs already counts as started. Throws while Temporal is unavailable. */
  start(job: RetryDeliveriesInput): Promise<void>
}

export function createRetryWorkflows(options: { client: () => Client; taskQueue: string }): RetryWorkflows {
  return {
    async start(job) {
      const temporal = options.client()
      await startOnce(temporal, () =>
        temporal.workflow.start('retryDeliveries', {
          workflowId: retryWorkflowId(job.jobId),
          taskQueue: options.taskQueue,
          args: [job],
          workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
          staticSummary: 'retry-deliveries',
          typedSearchAttributes: [{ key: searchAttributes.organisationId, value: job.organisationId }],
        }),
      )
    },
  }
}

export function retryWorkflowId(jobId: string): string {
  return `retry-deliveries/${jobId}`
}
