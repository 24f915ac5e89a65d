import { WorkflowIdReusePolicy, type Client } from '@temporalio/client'
import type { EraseOrganisationInput } from '../domain/workflow-inputs.ts'
import { startOnce } from './calls.ts'
import { searchAttributes } from './search-attributes.ts'

/** Starts the workflows that erase organisations. */
export type ErasureWorkflows = {
  /** Starts `erasure/<organisationId>`; one that runs already counts as started. Throws while Temporal is unavailable. */
  start(erasure: EraseOrganisationInput): Promise<void>
}

export function createErasureWorkflows(options: {
  client: () => Client
  taskQueue: string
}): ErasureWorkflows {
  return {
    async start(erasure) {
      const { organisationId } = erasure
      const temporal = options.client()
      await startOnce(temporal, () =>
        temporal.workflow.start('eraseOrganisation', {
          workflowId: erasureWorkflowId(organisationId),
          taskQueue: options.taskQueue,
          args: [erasure],
          workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
          staticSummary: 'erasure',
          typedSearchAttributes: [{ key: searchAttributes.organisationId, value: organisationId }],
        }),
      )
    },
  }
}

export function erasureWorkflowId(organisationId: string): string {
  return `erasure/${organisationId}`
}
