import { MAX_COUNTED, type BucketRow, type FirstAttemptLatency } from '../../db/queries/activity.ts'
import type { FailuresRow } from '../../db/queries/failures.ts'
import type { OverviewRow } from '../../db/queries/overview.ts'
import type { Grants, PermissionFor } from '../../domain/permissions.ts'
import { webhookStatus, type WebhookStatus } from '../../domain/webhook-status.ts'
import { nameWebhook } from '../../domain/webhook-name.ts'
import { presentFailures } from './incident.ts'
import { presentWebhook } from './webhook.ts'

/** Presents a webhook with the state of its deliveries to `reader`. */
export function presentOverview(row: OverviewRow, reader: Grants, permissionFor: PermissionFor) {
  const { waitingForFirstAttempt, oldestWaitingForFirstAttemptMs, waitingForRetry } = row
  const { permanentlyFailed, stopped, latestAttempt, openIncident } = row
  const { attempts, succeeded, p95DurationMs } = row.recent
  return {
    ...presentWebhook(row, reader, permissionFor),
    name: nameWebhook(row.url, row.id),
    status: statusOf(row),
    recent: { attempts, succeeded, p95DurationMs },
    waitingForFirstAttempt,
    oldestWaitingForFirstAttemptMs,
    waitingForRetry,
    permanentlyFailed,
    stopped,
    latestAttempt: latestAttempt === null ? null : presentLatest(latestAttempt),
    openIncident: openIncident === null ? null : presentOpen(openIncident),
  }
}

export function statusOf({ enabled, openIncident, latestAttempt, recent }: OverviewRow): WebhookStatus {
  const latestOutcome = latestAttempt?.outcome ?? null
  const { sinceOpened } = recent
  return webhookStatus({ enabled, hasOpenIncident: openIncident !== null, latestOutcome, sinceOpened })
}

function presentLatest(latest: NonNullable<OverviewRow['latestAttempt']>) {
  const { deliveryId, eventKey, number, attemptedAt, outcome, statusCode, error } = latest
  return { deliveryId, eventKey, number, attemptedAt: attemptedAt.toISOString(), outcome, statusCode, error }
}

function presentOpen({ id, openedAt, exhaustedAt }: NonNullable<OverviewRow['openIncident']>) {
  return { id, openedAt: openedAt.toISOString(), exhaustedAt: exhaustedAt?.toISOString() ?? null }
}

type Buckets = (BucketRow & { webhookId: string })[]

export function presentActivity(
  bucketMs: number,
  buckets: Buckets,
  found: { p95DurationMs: number | null; firstAttempt: FirstAttemptLatency; failures: FailuresRow },
) {
  const { p95DurationMs, firstAttempt, failures } = found
  const { count, p50Ms, p99Ms } = firstAttempt
  return {
    ...presentBuckets(bucketMs, buckets),
    p95DurationMs,
    firstAttempt: { count, p50Ms, p99Ms },
    failures: presentFailures(failures),
  }
}

/** Groups the buckets of several webhooks: as many of each, one webhook after the other. */
export function presentActivities(bucketMs: number, buckets: Buckets) {
  const webhookIds = [...new Set(buckets.map(({ webhookId }) => webhookId))]
  const perWebhook = buckets.length / webhookIds.length
  return webhookIds.map((webhookId, index) => ({
    webhookId,
    ...presentBuckets(bucketMs, buckets.slice(index * perWebhook, (index + 1) * perWebhook)),
  }))
}

function presentBuckets(bucketMs: number, rows: Buckets) {
  const isFull = (outcome: 'succeeded' | 'failed') =>
    rows.reduce((sum, row) => sum + row[outcome], 0) >= MAX_COUNTED
  const buckets = rows.map(({ startedAt, succeeded, failed }) => ({
    startedAt: startedAt.toISOString(),
    succeeded,
    failed,
  }))
  return { bucketMs, buckets, isCapped: isFull('succeeded') || isFull('failed') }
}
