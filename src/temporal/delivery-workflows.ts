import {
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  type Client,
} from '@temporalio/client'
import type { DeliverEventInput } from '../../workflows/messages.ts'
import { searchAttributes } from './search-attributes.ts'

/** A delivery as its workflow is labelled: ids, and the URL of which only the host is shown. */
type DeliveryLabel = {
  organisationId: string
  deliveryId: string
  webhookId: string
  eventKey: string
  url: string
}

/** The workflows of deliveries, as the starter and the sweep see them. Every call throws while the engine is away. */
export type DeliveryWorkflows = {
  /**
   * Starts `delivery/<deliveryId>`; one that runs already counts as started.
   * Unless `again`, one that ran before counts too, so that a repeated start makes nothing twice.
   */
  start(delivery: DeliveryLabel, next: DeliverEventInput['next'], options: { again: boolean }): Promise<void>
  isRunning(deliveryId: string): Promise<boolean>
}

/** A start or look that takes longer than this is given up and tried again later. */
const CALL_TIMEOUT_MS = 5_000

export function deliveryWorkflowId(deliveryId: string): string {
  return `delivery/${deliveryId}`
}

/**
 * `eager`: this process runs a worker of the task queue on the client's connection, so that the first task comes back
 * with the start itself. `leadMs` is given to every workflow (see DeliverEventInput).
 */
export function createDeliveryWorkflows(options: {
  client: () => Client
  taskQueue: string
  leadMs: number
  eager: boolean
}): DeliveryWorkflows {
  const { client, taskQueue, leadMs, eager } = options
  return {
    async start(delivery, next, { again }) {
      const { organisationId, deliveryId, webhookId, eventKey, url } = delivery
      const input: DeliverEventInput = { organisationId, deliveryId, next, leadMs }
      const temporal = client()
      try {
        await temporal.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
          temporal.workflow.start('deliverEvent', {
            workflowId: deliveryWorkflowId(deliveryId),
            taskQueue,
            args: [input],
            workflowIdReusePolicy: again
              ? WorkflowIdReusePolicy.ALLOW_DUPLICATE
              : WorkflowIdReusePolicy.REJECT_DUPLICATE,
            requestEagerStart: eager,
            // The engine serves a backlog webhook by webhook in turn, so that one cannot stand before all others.
            priority: { fairnessKey: webhookId },
            staticSummary: `${eventKey} → ${new URL(url).origin}/…`,
            typedSearchAttributes: [
              { key: searchAttributes.organisationId, value: organisationId },
              { key: searchAttributes.webhookId, value: webhookId },
              { key: searchAttributes.eventKey, value: eventKey },
              { key: searchAttributes.deliveryState, value: next.number === 1 ? 'pending' : 'waiting' },
            ],
          }),
        )
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
      }
    },

    async isRunning(deliveryId) {
      const temporal = client()
      try {
        const { status } = await temporal.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
          temporal.workflow.getHandle(deliveryWorkflowId(deliveryId)).describe(),
        )
        return status.name === 'RUNNING'
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return false
        throw error
      }
    },
  }
}
