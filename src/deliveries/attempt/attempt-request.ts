import type { DataSource } from 'typeorm'
import type { DatabaseClock } from '../../db/database-clock.ts'
import type { AttemptKey, Claim } from '../../db/queries/claims.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import type { AttemptKind } from '../../domain/task-queues.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { HttpClient } from '../../outbound/http-client.ts'
import type { SecretBox } from '../../secret-box.ts'
import type { IncidentWorkflows } from '../../temporal/incident-workflows.ts'
import type { Endpoints, Slot } from './endpoint-registry.ts'
import type { Pace } from './pace.ts'
import type { RecordFirstSuccess } from './record-successes.ts'
import type { RecordUnderLock } from './record-under-lock.ts'

/** The dependencies of an attempt. `attemptTimeoutMs` is the deadline of one whole POST. */
export type AttemptDependencies = {
  dataSource: DataSource
  httpClient: HttpClient
  secretBox: SecretBox
  logger: Logger
  metrics: Metrics
  attemptTimeoutMs: number
  endpoints: Endpoints
  incidentWorkflows: IncidentWorkflows
  onAttempt: (event: AttemptEvent) => void
  recordFirstSuccess: RecordFirstSuccess
  recordUnderLock: RecordUnderLock
  /** Paces the reports of time-outs to Temporal: endpoints that hang together time out together. */
  timeoutPace: Pace
  clock: DatabaseClock
}

/**
 * What an attempt reports: it has `begun` with a slot of its endpoint, its slot is free (`slot_freed`), it has `ended`.
 * `isInline`: it is made without a workflow.
 */
export type AttemptEvent = {
  type: 'begun' | 'slot_freed' | 'ended'
  isInline: boolean
  webhookId: string
  deliveryId: string
}

export type AttemptRequest = AttemptKey & {
  webhookId: string
  /** The instant to wait for, in Unix ms of the database's clock, for `maxWaitMs` at most. */
  waitUntil: { dueAtMs: number; maxWaitMs: number } | null
  /** Makes the attempt only if the row is due: its workflow was woken, for a retry or for a stop. */
  onlyIfDue: boolean
  /** Only a `slow` attempt is made at an endpoint that is slow or hangs. */
  kind: AttemptKind
}

/**
 * `cancelled`: the attempt is not to be made any more, unless its POST has begun. `shutDown`: the process ends, and cuts
 * the POST off.
 */
export type AttemptSignals = { cancelled: AbortSignal; shutDown: AbortSignal }

/**
 * A first attempt that is made without a workflow, in `slot`. `claim`: the row as read under the lease that `owner` has
 * since its commit; null when the row is to be claimed.
 */
export type InlineAttempt = { owner: string; claim: Claim | null; slot: Slot }

/** Makes one attempt. `inline` is null for the attempts of workflows. */
export type MakeAttempt = (
  request: AttemptRequest,
  signals: AttemptSignals,
  inline?: InlineAttempt | null,
) => Promise<AttemptOutcome>
