import type { DataSource } from 'typeorm'
import type { DatabaseClock } from '../../db/connection/database-clock.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import type { AttemptRequest } from '../../domain/attempt-outcome.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { HttpClient } from '../../outbound/http-client.ts'
import type { SecretBox } from '../../secret-box.ts'
import type { Pace } from '../../timers.ts'
import type { WebhookLocks } from '../../webhooks/webhook-locks.ts'
import type { IncidentWorkflows } from '../../temporal/job-workflows.ts'
import type { Claim } from '../protocol/claim.ts'
import type { Slot } from './endpoint.ts'
import type { Endpoints } from './endpoint-concurrency.ts'
import type { RecordFirstSuccess } from './record-outcome.ts'
import type { RecordUnderLock } from './record-under-lock.ts'

/** The dependencies of an attempt. `attemptTimeoutMs` is the deadline of one whole POST. */
export type AttemptDependencies = {
  dataSource: DataSource
  locks: WebhookLocks
  httpClient: HttpClient
  secretBox: SecretBox
  logger: Logger
  metrics: Metrics
  attemptTimeoutMs: number
  endpoints: Endpoints
  incidentWorkflows: IncidentWorkflows
  recordFirstSuccess: RecordFirstSuccess
  recordUnderLock: RecordUnderLock
  /** Paces the reports of time-outs to Temporal: endpoints that hang together time out together. */
  timeoutPace: Pace
  clock: DatabaseClock
}

/** What an attempt reports when it has begun, and when a slot is free. `isInline`: it is made without a workflow. */
export type AttemptEvent = { isInline: boolean; webhookId: string; deliveryId: string }
export type OnAttempt = (event: AttemptEvent) => void

/**
 * `cancelled`: the attempt is not to be made any more, unless its POST has begun. `shutDown`: the process ends, and cuts
 * the POST off.
 */
export type AttemptSignals = { cancelled: AbortSignal; shutDown: AbortSignal }

/**
 * An attempt that is made without a workflow, in `slot`. `claim`: the row as it was claimed by a statement that was sent
 * at `claimedAtMs`, on `performance.now()`.
 */
export type InlineAttempt = { claim: Claim; claimedAtMs: number; slot: Slot }

/** Makes one attempt. `inline` is null for the attempts of workflows. */
export type MakeAttempt = (
  request: AttemptRequest,
  signals: AttemptSignals,
  inline?: InlineAttempt | null,
) => Promise<AttemptOutcome>
