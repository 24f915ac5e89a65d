import { WorkflowExecutionAlreadyStartedError, WorkflowIdReusePolicy, type Client } from '@temporalio/client'
import type { RetryDeliveriesInput } from '../../workflows/messages.ts'
import { searchAttributes } from './search-attributes.ts'

/** The workflows of retry jobs. */
export type RetryWorkflows = {
  /** Starts `retry-deliveries/<jobId>`; one that runs already counts as started. Throws while the engine is away. */
  start(job: RetryDeliveriesInput): Promise<void>
}

const START_TIMEOUT_MS = 5_000

export function createRetryWorkflows(options: { client: () => Client; taskQueue: string }): RetryWorkflows {
  return {
    async start(job) {
      const temporal = options.client()
      try {
        await temporal.withDeadline(Date.now() + START_TIMEOUT_MS, () =>
          temporal.workflow.start('retryDeliveries', {
            workflowId: `retry-deliveries/${job.jobId}`,
            taskQueue: options.taskQueue,
            args: [job],
            workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
            staticSummary: 'retry-deliveries',
            typedSearchAttributes: [{ key: searchAttributes.organisationId, value: job.organisationId }],
          }),
        )
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
      }
    },
  }
}
