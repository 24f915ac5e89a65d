import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { withCallTimeout } from './calls.ts'
import { deliveryWorkflowId } from './delivery-workflows.ts'
import { incidentWorkflowId } from './incident-workflows.ts'

/** Ends workflows of what is erased; one that has ended, or never was, is fine. Throws while Temporal is unavailable. */
export type WorkflowTermination = {
  ofDelivery(deliveryId: string): Promise<void>
  ofIncident(webhookId: string, incidentId: string): Promise<void>
}

const REASON = 'posthorn: its organisation is erased'

export function createWorkflowTermination(client: () => Client): WorkflowTermination {
  async function terminate(workflowId: string): Promise<void> {
    const temporal = client()
    try {
      await withCallTimeout(temporal, () => temporal.workflow.getHandle(workflowId).terminate(REASON))
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error
    }
  }
  return {
    ofDelivery: (deliveryId) => terminate(deliveryWorkflowId(deliveryId)),
    ofIncident: (webhookId, incidentId) => terminate(incidentWorkflowId(webhookId, incidentId)),
  }
}
