import { ApplicationFailure, Context } from '@temporalio/activity'
import { eraseOrganisation, type EraseDependencies } from '../src/accounts/erase-organisation.ts'
import { retryWhileUnavailable } from '../src/db/connection/connection-errors.ts'
import type { AttemptSignals, MakeAttempt } from '../src/deliveries/attempt/make-attempt.ts'
import { requestRetries } from '../src/deliveries/protocol/change-deliveries.ts'
import { advanceRetryJob, type RetryJobDependencies } from '../src/deliveries/retry/advance-retry-job.ts'
import type { AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import type {
  EraseOrganisationInput,
  PurgeInput,
  RetryDeliveriesInput,
  UpdatedIncident,
  UpdateIncidentRequest,
} from '../src/domain/workflow-inputs.ts'
import type { AttemptRequest } from '../src/domain/attempt-outcome.ts'
import { DELIVERY_STATES } from '../src/domain/delivery-state.ts'
import { toAttemptRequest, withOldFields, type OldAttemptRequest } from '../src/domain/old-attempts.ts'
import { evaluateNotifications } from '../src/incidents/evaluate-notifications.ts'
import { sendDue, type SendDependencies } from '../src/incidents/notifications/send-due.ts'
import { purge, type PurgeDependencies } from '../src/retention/purge.ts'
import { StoppingError, type Shutdown } from '../src/shutdown.ts'
import { onAbort } from '../src/timers.ts'
import { transactOnWebhook } from '../src/webhooks/webhook-locks.ts'

export type ActivityDependencies = RetryJobDependencies &
  PurgeDependencies &
  EraseDependencies &
  SendDependencies & { makeAttempt: MakeAttempt; shutdown: Pick<Shutdown, 'stopping'> }

type DeliveryIds = { organisationId: string; webhookId: string; deliveryId: string }

export type Activities = ReturnType<typeof createActivities>

/** Builds the activities of a worker. Running one of them twice is harmless. */
export function createActivities(dependencies: ActivityDependencies) {
  const { makeAttempt, shutdown } = dependencies
  const { stopping } = shutdown
  return {
    /**
     * An attempt is identified by (delivery, number), and nothing is posted once it is recorded. When this process stops,
     * an attempt whose POST has not begun is left to another worker.
     */
    makeAttempt: (request: AttemptRequest | OldAttemptRequest): Promise<AttemptOutcome> =>
      withHeartbeat(async (signals) => {
        const either = new AbortController()
        const release = onAbort([signals.cancelled, stopping], (reason) => either.abort(reason))
        try {
          const wanted = toAttemptRequest(request)
          return withOldFields(await makeAttempt(wanted, { ...signals, cancelled: either.signal }))
        } catch (error) {
          if (!stopping.aborted || signals.cancelled.aborted || !isStop(error)) throw error
          throw leftToAnotherWorker()
        } finally {
          release()
        }
      }),

    /** Sets the same columns again when it is repeated. */
    requestRetry: ({ organisationId, webhookId, deliveryId }: DeliveryIds): Promise<void> =>
      withHeartbeat(async ({ cancelled }) => {
        const requested = { organisationId, webhookId, ids: [deliveryId], states: DELIVERY_STATES }
        await retryWhileUnavailable(
          () => transactOnWebhook(dependencies, webhookId, (manager) => requestRetries(manager, requested)),
          cancelled,
        )
      }),

    /** A notification is addressed once, and claimed before it is sent. */
    updateIncident: (request: UpdateIncidentRequest): Promise<UpdatedIncident> =>
      withHeartbeat(async ({ cancelled }) => {
        const evaluation = await retryWhileUnavailable(
          () => evaluateNotifications(dependencies, request),
          cancelled,
        )
        if (evaluation === null) return { evaluation, notifications: [] }
        return { evaluation, notifications: await sendDue(dependencies, request, cancelled) }
      }),

    /** The cursors of the job are advanced under their locks. */
    advanceRetryJob: (job: RetryDeliveriesInput) =>
      withHeartbeat(({ cancelled }) => advanceRetryJob(dependencies, job, cancelled)),

    /** Deleted rows are not found again. */
    purge: (limits: PurgeInput) => withHeartbeat(({ cancelled }) => purge(dependencies, limits, cancelled)),

    /** Each batch locks the erasure, and erased rows are not found again. */
    eraseOrganisation: ({ organisationId }: EraseOrganisationInput) =>
      withHeartbeat(({ cancelled }) => eraseOrganisation(dependencies, organisationId, cancelled)),
  }
}

function leftToAnotherWorker(): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'WorkerStopping',
    message: 'This worker is stopping; another one makes the attempt.',
    nextRetryDelay: '1 millisecond',
  })
}

/** Node wraps the reason of an aborted wait. */
function isStop(error: unknown): boolean {
  return error instanceof StoppingError || (error instanceof Error && error.cause instanceof StoppingError)
}

const HEARTBEATS_PER_TIMEOUT = 4

/**
 * Runs `work`, and sends heartbeats to Temporal meanwhile. `cancelled` aborts when the activity is cancelled; `shutDown`
 * only when the grace of a stopping worker is over.
 */
async function withHeartbeat<T>(work: (signals: AttemptSignals) => Promise<T>): Promise<T> {
  // Read here: the abort handler runs outside the activity, without a current context.
  const context = Context.current()
  const timeoutMs = context.info.heartbeatTimeoutMs ?? 10_000
  const beat = setInterval(() => context.heartbeat(), timeoutMs / HEARTBEATS_PER_TIMEOUT)
  const cancelled = context.cancellationSignal
  const shutDown = new AbortController()
  const onCancelled = (): void => {
    if (context.cancellationDetails?.workerShutdown === true) shutDown.abort(cancelled.reason)
  }
  cancelled.addEventListener('abort', onCancelled)
  try {
    return await work({ cancelled, shutDown: shutDown.signal })
  } finally {
    clearInterval(beat)
    cancelled.removeEventListener('abort', onCancelled)
  }
}
