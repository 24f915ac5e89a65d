import { WorkflowIdReusePolicy, type Client } from '@temporalio/client'
import type {
  EraseOrganisationInput,
  RetryDeliveriesInput,
  IncidentInput,
  IncidentLabel,
} from '../domain/workflow-inputs.ts'
import { startOnce, signalWithStart } from './calls.ts'
import { searchAttributes } from './namespace.ts'
import { nameWebhook } from '../domain/webhook-name.ts'

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

/** Signals the workflows of incidents. Every call throws while Temporal is unavailable. */
export type IncidentWorkflows = {
  /** Signals `incident/<webhookId>/<incidentId>` that its row has changed; starts it if none runs. */
  signal(incident: IncidentLabel): Promise<void>
}

/** `notifyAfterMs` is part of the input of every workflow (see IncidentInput). */
export function createIncidentWorkflows(options: {
  client: () => Client
  taskQueue: string
  notifyAfterMs: number
}): IncidentWorkflows {
  return {
    async signal({ organisationId, webhookId, incidentId, url, openedAt }) {
      const input: IncidentInput = {
        organisationId,
        webhookId,
        incidentId,
        notifyAfterMs: options.notifyAfterMs,
      }
      const temporal = options.client()
      const start = {
        workflowId: incidentWorkflowId(webhookId, incidentId),
        taskQueue: options.taskQueue,
        args: [input] as [IncidentInput],
        priority: { fairnessKey: webhookId },
        staticSummary: `${nameWebhook(url, webhookId)} failing since ${openedAt.toISOString()}`,
        typedSearchAttributes: [
          { key: searchAttributes.organisationId, value: organisationId },
          { key: searchAttributes.webhookId, value: webhookId },
        ],
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
        signal: 'changed',
        signalArgs: [] as [],
      }
      await signalWithStart(temporal, () => temporal.workflow.signalWithStart('incident', start))
    },
  }
}

export function incidentWorkflowId(webhookId: string, incidentId: string): string {
  return `incident/${webhookId}/${incidentId}`
}
