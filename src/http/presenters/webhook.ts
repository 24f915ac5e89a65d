import type { BucketRow, FirstAttemptLatency } from '../../db/queries/activity.ts'
import type { Backlog } from '../../db/queries/backlog.ts'
import type { FailuresRow } from '../../db/queries/failures.ts'
import type { ListedIncident } from '../../db/queries/incidents.ts'
import type { OperatorCounts, OperatorWebhookRow } from '../../db/queries/operator-view.ts'
import type { OverviewRow } from '../../db/queries/overview.ts'
import type { WebhookRow } from '../../db/queries/webhooks.ts'
import { FAILURE_TEXTS } from '../../domain/attempt-outcome.ts'
import {
  missingPermissions,
  ORGANIZATION_SETTINGS_UPDATE,
  type Grants,
  type PermissionFor,
} from '../../domain/permissions.ts'
import { webhookStatus, type OperatorState, type WebhookStatus } from '../../domain/webhook-status.ts'
import { nameWebhook, urlFor } from '../../domain/webhook-name.ts'
import type { ApiDependencies } from '../api.ts'
import { OperatorWebhookSchema } from '../schemas/operator-view.ts'
import {
  ActivitySchema,
  IncidentSchema,
  WebhookActivitySchema,
  WebhookOverviewSchema,
} from '../schemas/overview.ts'
import { WebhookSchema } from '../schemas/webhook.ts'
import { presenter } from './presenter.ts'

const presentShown = presenter(WebhookSchema)

/** Presents a webhook to `reader`. A secret has no presenter. */
export function presentWebhook(webhook: WebhookRow, reader: Grants, permissionFor: PermissionFor) {
  const url = urlFor(reader, webhook, permissionFor)
  return presentShown({ ...webhook, url, operatorHold: holdOf(webhook) })
}

/** The operator's hold on a webhook; null without one. */
export function holdOf({ heldAt, holdReason }: Pick<WebhookRow, 'heldAt' | 'holdReason'>) {
  return heldAt === null ? null : { since: heldAt, reason: holdReason ?? '' }
}

const presentShownOverview = presenter(WebhookOverviewSchema)

/** Presents a webhook with the state of its deliveries to `reader`. */
export function presentOverview(row: OverviewRow, reader: Grants, permissionFor: PermissionFor) {
  return presentShownOverview({
    ...row,
    url: urlFor(reader, row, permissionFor),
    operatorHold: holdOf(row),
    name: nameWebhook(row.url, row.id),
    status: statusOf(row),
  })
}

function statusOf({ enabled, openIncident, latestAttempt, recent }: OverviewRow): WebhookStatus {
  const latestOutcome = latestAttempt?.outcome ?? null
  const { sinceOpened } = recent
  return webhookStatus({ enabled, hasOpenIncident: openIncident !== null, latestOutcome, sinceOpened })
}

const presentShownActivity = presenter(ActivitySchema)

export function presentActivity(
  bucketMs: number,
  buckets: BucketRow[],
  found: { p95DurationMs: number | null; firstAttempt: FirstAttemptLatency; failures: FailuresRow },
) {
  return presentShownActivity({
    ...found,
    ...countedIn(buckets, bucketMs),
    failures: withCures(found.failures),
  })
}

const presentWebhookActivity = presenter(WebhookActivitySchema)

/** Groups the buckets of several webhooks: as many of each, one webhook after the other. */
export function presentActivities(bucketMs: number, buckets: BucketRow[]) {
  const webhookIds = [...new Set(buckets.map(({ webhookId }) => webhookId))]
  const perWebhook = buckets.length / webhookIds.length
  return webhookIds.map((webhookId, index) => {
    const own = buckets.slice(index * perWebhook, (index + 1) * perWebhook)
    return presentWebhookActivity({ webhookId, ...countedIn(own, bucketMs) })
  })
}

function countedIn(buckets: BucketRow[], bucketMs: number) {
  const isFull = (outcome: 'succeeded' | 'failed') =>
    buckets.reduce((sum, bucket) => sum + bucket[outcome], 0) >= (buckets[0]?.maxCounted ?? Infinity)
  return { bucketMs, buckets, isCapped: isFull('succeeded') || isFull('failed') }
}

const presentShownIncident = presenter(IncidentSchema)

/** Presents an incident to `reader`, with recipients only for a member that may change the organisation's settings. */
export function presentIncident(incident: ListedIncident, reader: Grants) {
  const showsRecipients = missingPermissions(reader, [ORGANIZATION_SETTINGS_UPDATE]).length === 0
  const notifications = incident.notifications.map((notification) => ({
    ...notification,
    recipient: showsRecipients ? notification.recipient : null,
  }))
  return presentShownIncident({ ...incident, failures: withCures(incident.failures), notifications })
}

/** Adds to each cause what to do about it. */
function withCures(failures: FailuresRow) {
  const causes = failures.causes.map((cause) => ({ ...cause, cure: FAILURE_TEXTS[cause.failureCode].cure }))
  return { ...failures, causes }
}

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

const presentShownToOperators = presenter(OperatorWebhookSchema)

/** Presents a webhook of the list of `state` to operators, without what belongs to its organisation. */
export function presentOperatorWebhook(
  row: OperatorWebhookRow,
  state: OperatorState,
  temporalUi: ApiDependencies['temporalUi'],
) {
  return presentShownToOperators({
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
