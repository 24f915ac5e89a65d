import type { Backlog } from '../../db/queries/backlog.ts'
import type { OperatorCounts, OperatorWebhookRow } from '../../db/queries/operator-view.ts'
import { nameWebhook } from '../../domain/webhook-name.ts'
import type { OperatorState } from '../../domain/webhook-status.ts'
import type { ApiDependencies } from '../api.ts'
import { OperatorWebhookSchema } from '../schemas/operator-view.ts'
import { presenter } from './presenter.ts'
import { holdOf, statusOf } from './webhook.ts'

export function presentCounts({ organisations, ...webhooks }: OperatorCounts, backlog: Backlog | null) {
  return { organisations, webhooks, backlog: backlog === null ? null : presentBacklog(backlog) }
}

function presentBacklog(backlog: Backlog) {
  const { busy, idle } = backlog.oldestPendingAge
  return {
    openIncidents: backlog.openIncidents,
    waitingForFirstAttempt: backlog.pending,
    oldestWaitingForFirstAttemptMs: toMs(Math.max(busy, idle)),
    waitingForRetry: backlog.waiting,
    permanentlyFailed: backlog.failed,
    pausedDeliveries: backlog.paused,
    workflowsOwed: backlog.owedWorkflows,
    oldestWorkflowOwedMs: toMs(backlog.oldestOwedAge),
  }
}

const toMs = (seconds: number): number => Math.round(seconds * 1_000)

const presentShown = presenter(OperatorWebhookSchema)

/** Presents a webhook of the list of `state` to operators, without what belongs to its organisation. */
export function presentOperatorWebhook(
  row: OperatorWebhookRow,
  state: OperatorState,
  temporalUi: ApiDependencies['temporalUi'],
) {
  return presentShown({
    ...row,
    organisation: { id: row.organisationId, name: row.organisationName },
    name: nameWebhook(row.url, row.id),
    status: statusOf(row),
    operatorHold: holdOf(row),
    since: sinceWhen(row, state),
    cause: state === 'disabled' ? row.holdReason : row.latestError,
    counts: row,
    temporalUrl: temporalUi === null ? null : workflowsOf(row.id, temporalUi),
  })
}

function sinceWhen(row: OperatorWebhookRow, state: OperatorState): Date {
  const { updatedAt, heldAt, pausedSince, openIncident, latestAttempt } = row
  if (state === 'disabled') return heldAt ?? updatedAt
  if (state === 'paused') return pausedSince ?? updatedAt
  return openIncident?.openedAt ?? latestAttempt?.attemptedAt ?? updatedAt
}

function workflowsOf(webhookId: string, { url, namespace }: { url: string; namespace: string }): string {
  const query = new URLSearchParams({ query: `WebhookId = '${webhookId}'` }).toString()
  return `${url}/namespaces/${encodeURIComponent(namespace)}/workflows?${query}`
}
