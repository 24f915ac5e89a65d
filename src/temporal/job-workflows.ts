import { WorkflowIdReusePolicy, type Client } from '@temporalio/client'
import type { EraseOrganisationInput, RetryDeliveriesInput } from '../domain/workflow-inputs.ts'
import { startOnce } from './calls.ts'
import { searchAttributes } from './search-attributes.ts'

/** Starts workflows that work in steps, whose progress is in the database: one for each row. */
type JobWorkflows<Input> = {
  /** Starts the workflow; one that runs already counts as started. Throws while Temporal is unavailable. */
  start(input: Input): Promise<void>
}

/** Of retry jobs. */
export type RetryWorkflows = JobWorkflows<RetryDeliveriesInput>

/** Of erasures of organisations. */
export type ErasureWorkflows = JobWorkflows<EraseOrganisationInput>

export function createJobWorkflows({ client, taskQueue }: { client: () => Client; taskQueue: string }): {
  retryWorkflows: RetryWorkflows
  erasureWorkflows: ErasureWorkflows
} {
  async function start(type: string, workflowId: string, input: { organisationId: string }): Promise<void> {
    const temporal = client()
    await startOnce(temporal, () =>
      temporal.workflow.start(type, {
        workflowId,
        taskQueue,
        args: [input],
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
        staticSummary: workflowId.slice(0, workflowId.indexOf('/')),
        typedSearchAttributes: [{ key: searchAttributes.organisationId, value: input.organisationId }],
      }),
    )
  }
  return {
    retryWorkflows: { start: (job) => start('retryDeliveries', retryWorkflowId(job.jobId), job) },
    erasureWorkflows: {
      start: (erasure) => start('eraseOrganisation', erasureWorkflowId(erasure.organisationId), erasure),
    },
  }
}

export function retryWorkflowId(jobId: string): string {
  return `retry-deliveries/${jobId}`
}

export function erasureWorkflowId(organisationId: string): string {
  return `erasure/${organisationId}`
}
