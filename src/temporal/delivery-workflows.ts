import { WorkflowIdReusePolicy, WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { DeliverEventInput } from '../../workflows/messages.ts'
import type { AttemptKind } from '../domain/task-queues.ts'
import { nameWebhook } from '../domain/webhook-name.ts'
import type { DeliveryLabel } from '../domain/workflow-labels.ts'
import { inTime, signalWithStart, startOnce } from './calls.ts'
import { searchAttributes } from './search-attributes.ts'

/** The workflows of deliveries, as the dispatcher and the sweep see them. Every call throws while the engine is away. */
export type DeliveryWorkflows = {
  /**
   * Starts `delivery/<deliveryId>`; false when one runs already.
   * Unless `again`, one that ran before counts too, so that a repeated start makes nothing twice.
   * `kind`: of the attempt that it begins with; without it, what its number says.
   */
  start(
    delivery: DeliveryLabel,
    next: DeliverEventInput['next'],
    options: { again: boolean; kind?: AttemptKind },
  ): Promise<boolean>
  /** Starts the workflow of a delivery that was completed without one: it shows the outcome, and ends. */
  follow(delivery: DeliveryLabel, attempts: number): Promise<void>
  /**
   * Wakes the workflow up to look at its row, where a person's retry is noted; starts one at `attempts` recorded
   * attempts if none runs.
   */
  wake(delivery: DeliveryLabel, attempts: number): Promise<void>
  /** Has the workflow look at its row, which is stopped; one that is no more needs no telling. */
  stop(deliveryId: string): Promise<void>
}

const { ALLOW_DUPLICATE, REJECT_DUPLICATE } = WorkflowIdReusePolicy

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
  /** By which a run is told how long it is to wait; without it the workflow goes by its own clock. */
  clock?: { nowMs(): number }
}): DeliveryWorkflows {
  const { client, taskQueue, leadMs, eager, clock } = options

  /** What a run of a delivery is started with, whoever starts it. */
  function startOptions(
    delivery: DeliveryLabel,
    begin: Pick<DeliverEventInput, 'next' | 'kind' | 'recorded'>,
  ) {
    const { organisationId, deliveryId, webhookId, eventKey, url } = delivery
    const input: DeliverEventInput = { organisationId, deliveryId, webhookId, leadMs, ...begin }
    return {
      workflowId: deliveryWorkflowId(deliveryId),
      taskQueue,
      args: [input] as [DeliverEventInput],
      // The engine serves a backlog webhook by webhook in turn, so that one cannot stand before all others.
      priority: { fairnessKey: webhookId },
      staticSummary: `${eventKey} → ${new URL(url).protocol}//${nameWebhook(url, webhookId)}`,
      typedSearchAttributes: [
        { key: searchAttributes.organisationId, value: organisationId },
        { key: searchAttributes.webhookId, value: webhookId },
        { key: searchAttributes.eventKey, value: eventKey },
      ],
    }
  }

  async function startWorkflow(
    delivery: DeliveryLabel,
    begin: Parameters<typeof startOptions>[1],
    workflowIdReusePolicy: WorkflowIdReusePolicy,
  ): Promise<boolean> {
    const temporal = client()
    const start = { ...startOptions(delivery, begin), workflowIdReusePolicy, requestEagerStart: eager }
    return startOnce(temporal, () => temporal.workflow.start('deliverEvent', start))
  }

  return {
    async start(delivery, next, { again, kind }) {
      const { number, dueAtMs } = next
      const waits = dueAtMs !== null && clock !== undefined
      const first = waits ? { number, dueAtMs, waitMs: dueAtMs - clock.nowMs() } : next
      const begin = kind === undefined ? { next: first } : { next: first, kind }
      return startWorkflow(delivery, begin, again ? ALLOW_DUPLICATE : REJECT_DUPLICATE)
    },

    async follow(delivery, attempts) {
      const next = { number: attempts + 1, dueAtMs: null }
      await startWorkflow(delivery, { next, recorded: { state: 'completed', attempts } }, REJECT_DUPLICATE)
    },

    async wake(delivery, attempts) {
      const temporal = client()
      const start = {
        ...startOptions(delivery, { next: { number: attempts + 1, dueAtMs: null } }),
        workflowIdReusePolicy: ALLOW_DUPLICATE,
        signal: 'retry',
        signalArgs: [{ noted: true }] as [{ noted: boolean }],
      }
      await signalWithStart(temporal, () => temporal.workflow.signalWithStart('deliverEvent', start))
    },

    async stop(deliveryId) {
      const temporal = client()
      try {
        const handle = temporal.workflow.getHandle(deliveryWorkflowId(deliveryId))
        await inTime(temporal, () => handle.signal('stop'))
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error
      }
    },
  }
}
