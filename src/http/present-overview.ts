import type { FirstAttemptLatency, HourRow } from '../db/queries/activity.ts'
import type { OverviewRow } from '../db/queries/overview.ts'
import type { Grants } from '../domain/permissions.ts'
import { nameWebhook } from '../domain/webhook-name.ts'
import { presentWebhook } from './present.ts'

/** A webhook with how its deliveries stand, as `reader` sees it. */
export function presentOverview(row: OverviewRow, reader: Grants) {
  const { waitingForRetry, permanentlyFailed, stopped, latestAttempt, openIncident } = row
  return {
    ...presentWebhook(row, reader),
    name: nameWebhook(row.url, row.id),
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
  return {
    hours: hours.map(({ startedAt, succeeded, failed }) => ({
      startedAt: startedAt.toISOString(),
      succeeded,
      failed,
    })),
    firstAttempt: { count, p50Ms, p99Ms },
  }
}
