import type { EntityManager } from 'typeorm'
import {
  addressNotification,
  findIncident,
  findRecipients,
  findEvaluationInputs,
  recordEvaluation,
  type IncidentRow,
} from '../db/queries/notifications.ts'
import { deleteEndedPushSubscriptions } from '../db/queries/push-subscriptions.ts'
import {
  dueKinds,
  type IncidentEvaluation,
  type NotificationKind,
  recipientsOf,
} from '../domain/notification-rules.ts'
import { ORGANIZATION_SETTINGS_UPDATE } from '../domain/permissions.ts'
import type { EvaluationRequest, IncidentLabel } from '../domain/workflow-inputs.ts'
import type { Logger } from '../observability/logger.ts'
import type { IncidentWorkflows } from '../temporal/workflows.ts'
import { settlesWithin } from '../timers.ts'
import { transactOnWebhook, type CommandDependencies } from '../webhooks/webhook-locks.ts'

/** How long after its workflow's own timer the sweeper signals an incident. */
const SWEEP_AFTER_MS = 30_000

/**
 * Evaluates an incident in one transaction under the lock of its webhook: addresses the notifications that are due to
 * their recipients, and notes what the workflow is to be woken for next. Harmless to repeat. Null when the incident was
 * purged. Nothing closes here: `db/queries/incidents.ts` does, with what resolves the last delivery.
 */
export async function evaluateNotifications(
  dependencies: CommandDependencies,
  request: EvaluationRequest,
): Promise<IncidentEvaluation | null> {
  const { organisationId, incidentId } = request
  const before = await findIncident(dependencies.dataSource, organisationId, incidentId)
  if (before === null) return null
  return transactOnWebhook(dependencies, before.webhookId, async (manager) => {
    const incident = await findIncident(manager, organisationId, incidentId)
    if (incident === null) return null
    const { open } = incident
    const inputs = await findEvaluationInputs(manager, incident)
    const due = open && inputs.live ? dueKinds({ ...incident, streak: inputs.streak }, request.dueFor) : []
    for (const kind of due) await address(manager, incident, kind)

    const isFirstGone = incident.firstNotifiedAt !== null || due.includes(1)
    const streak = open && inputs.live && !isFirstGone ? inputs.streak : null
    await recordEvaluation(manager, incident.id, {
      resting: open && !isFirstGone && streak === null,
      sweepAfterMs:
        streak === null ? null : Math.max(0, request.notifyAfterMs - streak.forMs) + SWEEP_AFTER_MS,
    })
    const notifiedAtMs = {
      1: atMs(incident.firstNotifiedAt, due.includes(1)),
      2: atMs(incident.secondNotifiedAt, due.includes(2)),
    }
    const { waiting, failed, lastFailure, live } = inputs
    const { failureCode, statusCode } = lastFailure
    const openedAtMs = incident.openedAt.getTime()
    return {
      open,
      live,
      openedAtMs,
      notifiedAtMs,
      streak,
      waiting,
      failed,
      failureCode,
      statusCode,
    }
  })
}

async function address(manager: EntityManager, incident: IncidentRow, kind: NotificationKind): Promise<void> {
  await deleteEndedPushSubscriptions(manager, incident.organisationId)
  const recipients = await findRecipients(manager, incident.organisationId, ORGANIZATION_SETTINGS_UPDATE)
  await addressNotification(manager, incident.id, kind, recipientsOf(recipients))
}

function atMs(noted: Date | null, now: boolean): number | null {
  if (noted !== null) return noted.getTime()
  return now ? Date.now() : null
}

/** What changed, and the incident whose workflow is to be signalled; null where nothing concerns it. */
export type Changed<T> = { result: T; toSignal: IncidentLabel | null }

/** The caller does not wait for a slow Temporal. */
const SIGNAL_TIMEOUT_MS = 1_000

export type SignalDependencies = { incidentWorkflows: IncidentWorkflows; logger: Logger }

/**
 * Signals the incident's workflow that the row changed. Never throws: the row is due for the sweeper, which repeats a
 * signal that was lost a few seconds later.
 */
export async function signalIncident(
  { incidentWorkflows, logger }: SignalDependencies,
  incident: IncidentLabel | null,
): Promise<void> {
  if (incident === null) return
  const { incidentId } = incident
  const signalled = incidentWorkflows
    .signal(incident)
    .catch((error: unknown) => logger.warn({ event: 'incident.signal_failed', incidentId, err: error }))
  await settlesWithin(signalled, SIGNAL_TIMEOUT_MS)
}
