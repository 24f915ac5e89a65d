import type { FirstAttemptLatency, HourRow } from '../../db/queries/activity.ts'
import type { OverviewRow } from '../../db/queries/overview.ts'
import type { Grants, PermissionFor } from '../../domain/permissions.ts'
import { webhookStatus } from '../../domain/webhook-status.ts'
import { nameWebhook } from '../../domain/webhook-name.ts'
import { presentWebhook } from './webhook.ts'

/** Presents a webhook with the state of its deliveries to `reader`. */
export function presentOverview(row: OverviewRow, reader: Grants, permissionFor: PermissionFor) {
  const { waitingForFirstAttempt, oldestWaitingForFirstAttemptMs, waitingForRetry } = row
  const { permanentlyFailed, stopped, latestAttempt, openIncident } = row
  const { sinceOpened, ...recent } = row.recent
  return {
    ...presentWebhook(row, reader, permissionFor),
    name: nameWebhook(row.url, row.id),
    status: webhookStatus({
      enabled: row.enabled,
      hasOpenIncident: openIncident !== null,
      latestOutcome: latestAttempt?.outcome ?? null,
      sinceOpened,
    }),
    recent,
    waitingForFirstAttempt,
    oldestWaitingForFirstAttemptMs,
    waitingForRetry,
    permanentlyFailed,
    stopped,
    latestAttempt: latestAttempt === null ? null : presentLatest(latestAttempt),
    openIncident: openIncident === null ? null : presentOpen(openIncident),
  }
}

function presentLatest(latest: NonNullable<OverviewRow['latestAttempt']>) {
  const { deliveryId, eventKey, number, attemptedAt, outcome, statusCode, error } = latest
  return { deliveryId, eventKey, number, attemptedAt: attemptedAt.toISOString(), outcome, statusCode, error }
}

function presentOpen({ id, openedAt, exhaustedAt }: NonNullable<OverviewRow['openIncident']>) {
  return { id, openedAt: openedAt.toISOString(), exhaustedAt: exhaustedAt?.toISOString() ?? null }
}

export function presentActivity(hours: HourRow[], { count, p50Ms, p99Ms }: FirstAttemptLatency) {
  return { hours: hours.map(presentHour), firstAttempt: { count, p50Ms, p99Ms } }
}

/** Groups the hours of several webhooks: as many of each, one webhook after the other. */
export function presentActivities(hours: (HourRow & { webhookId: string })[]) {
  const webhookIds = [...new Set(hours.map(({ webhookId }) => webhookId))]
  const perWebhook = hours.length / webhookIds.length
  return webhookIds.map((webhookId, index) => ({
    webhookId,
    hours: hours.slice(index * perWebhook, (index + 1) * perWebhook).map(presentHour),
  }))
}

function presentHour({ startedAt, succeeded, failed }: HourRow) {
  return { startedAt: startedAt.toISOString(), succeeded, failed }
}
