import { WorkflowIdReusePolicy, type Client } from '@temporalio/client'
import type {
  DeliverEventInput,
  RecordedAttempt,
  DeliveryLabel,
  EraseOrganisationInput,
  RetryDeliveriesInput,
  IncidentInput,
  IncidentLabel,
} from '../domain/workflow-inputs.ts'
import type { AttemptQueue } from '../domain/attempt-outcome.ts'
import { nameWebhook } from '../domain/webhook-name.ts'
import { orIfGone, signalWithStart, startOnce } from './calls.ts'
import { searchAttributes } from './namespace.ts'

/** Starts and signals the workflows of deliveries. Every call throws while Temporal is unavailable. */
export type DeliveryWorkflows = {
  /**
   * Starts `delivery/<deliveryId>` with the next attempt, also after a run that has ended: the row is the truth. Returns
   * false when one runs already. `queue` of the attempt, by default as its number says.
   */
  start(
    delivery: DeliveryLabel,
    next: DeliverEventInput['next'],
    options?: { queue?: AttemptQueue },
  ): Promise<boolean>
  /**
   * Starts the workflow of a delivery whose first attempt a process made without one, unless it ever had one: it shows
   * the recorded attempt, and ends. Returns false where it had one.
   */
  startFollowing(delivery: DeliveryLabel, recorded: RecordedAttempt): Promise<boolean>
  /**
   * Signals the workflow that a retry is requested on the row; starts it after `attempts` recorded attempts if none
   * runs.
   */
  wake(delivery: DeliveryLabel, attempts: number): Promise<void>
  /** Signals the workflow, if there is one, that the row may be final. */
  stop(deliveryId: string): Promise<void>
}

const { ALLOW_DUPLICATE, REJECT_DUPLICATE } = WorkflowIdReusePolicy

export function deliveryWorkflowId(deliveryId: string): string {
  return `delivery/${deliveryId}`
}

/**
 * `eager`: this process runs a worker of the task queue on the client's connection, so that a start returns the first
 * workflow task. `leadMs` is part of the input of every workflow (see DeliverEventInput).
 */
export function createDeliveryWorkflows(options: {
  client: () => Client
  taskQueue: string
  leadMs: number
  eager: boolean
}): DeliveryWorkflows {
  const { client, taskQueue, leadMs, eager } = options

  function startOptions(
    delivery: DeliveryLabel,
    first: Pick<DeliverEventInput, 'next' | 'queue' | 'recorded'>,
  ) {
    const { organisationId, deliveryId, webhookId, eventKey, url } = delivery
    const input: DeliverEventInput = { organisationId, deliveryId, webhookId, leadMs, ...first }
    return {
      workflowId: deliveryWorkflowId(deliveryId),
      taskQueue,
      args: [input] as [DeliverEventInput],
      // Temporal serves a backlog webhook by webhook.
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
    first: Parameters<typeof startOptions>[1],
    workflowIdReusePolicy: WorkflowIdReusePolicy,
  ): Promise<boolean> {
    const temporal = client()
    const start = { ...startOptions(delivery, first), workflowIdReusePolicy, requestEagerStart: eager }
    return startOnce(temporal, () => temporal.workflow.start('deliverEvent', start))
  }

  return {
    async start(delivery, next, { queue } = {}) {
      return startWorkflow(delivery, { next, ...(queue && { queue }) }, ALLOW_DUPLICATE)
    },

    async startFollowing(delivery, recorded) {
      const next = { number: recorded.attempts + 1, dueAtMs: null }
      return startWorkflow(delivery, { next, recorded }, REJECT_DUPLICATE)
    },

    async wake(delivery, attempts) {
      const temporal = client()
      const start = {
        ...startOptions(delivery, { next: { number: attempts + 1, dueAtMs: null } }),
        workflowIdReusePolicy: ALLOW_DUPLICATE,
        signal: 'retry',
        signalArgs: [{ isRecorded: true }] as [{ isRecorded: boolean }],
      }
      await signalWithStart(temporal, () => temporal.workflow.signalWithStart('deliverEvent', start))
    },

    async stop(deliveryId) {
      const handle = client().workflow.getHandle(deliveryWorkflowId(deliveryId))
      await orIfGone(undefined, client(), () => handle.signal('stop'))
    },
  }
}

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
