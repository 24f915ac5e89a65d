import { WorkflowIdReusePolicy, type Client } from '@temporalio/client'
import type { IncidentInput, IncidentLabel } from '../domain/workflow-inputs.ts'
import { nameWebhook } from '../domain/webhook-name.ts'
import { signalWithStart } from './calls.ts'
import { searchAttributes } from './search-attributes.ts'

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
