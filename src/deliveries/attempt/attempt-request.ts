import type { DataSource } from 'typeorm'
import type { DatabaseClock } from '../../db/database-clock.ts'
import type { AttemptKey, Claim } from '../../db/queries/attempts.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import type { AttemptKind } from '../../domain/task-queues.ts'
import type { Logger } from '../../logger.ts'
import type { Metrics } from '../../metrics.ts'
import type { HttpClient } from '../../outbound/http-client.ts'
import type { SecretBox } from '../../secret-box.ts'
import type { IncidentWorkflows } from '../../temporal/incident-workflows.ts'
import type { Endpoints, Slot } from './endpoints.ts'
import type { Pace } from './pace.ts'
import type { RecordFirstSuccess } from './record-first-successes.ts'
import type { WebhookLocks } from '../../incidents/webhook-locks.ts'

/** What an attempt needs of the house. `attemptTimeoutMs` is the deadline of one whole POST. */
export type AttemptDependencies = {
  dataSource: DataSource
  httpClient: HttpClient
  secretBox: SecretBox
  logger: Logger
  metrics: Metrics
  attemptTimeoutMs: number
  endpoints: Endpoints
  locks: WebhookLocks
  incidentWorkflows: IncidentWorkflows
  onAttempt: (event: AttemptEvent) => void
  recordFirstSuccess: RecordFirstSuccess
  /** At which time-outs are reported to Temporal: what hangs together times out together. */
  timeoutPace: Pace
  clock: DatabaseClock
}

/**
 * Reported while an attempt is made: it has `begun` with a slot of its endpoint, its slot is free (`slot_freed`), it has
 * `ended`. `isInline`: it is made without a workflow.
 */
export type AttemptEvent = {
  type: 'begun' | 'slot_freed' | 'ended'
  isInline: boolean
  webhookId: string
  deliveryId: string
}

export type AttemptRequest = AttemptKey & {
  webhookId: string
  /** Hold the attempt until that Unix ms of the database's clock, but never longer than `atMostMs`. */
  hold: { untilMs: number; atMostMs: number } | null
  /** Make it only if the row says that its time has come: the caller was woken and does not know what for. */
  onlyIfDue: boolean
  /** What it was taken for: only a `slow` one may go to an endpoint that is slow. */
  kind: AttemptKind
}

/**
 * `cancelled`: this process is not to make the attempt any more, unless its POST has begun. `shutDown`: this process
 * ends now.
 */
export type AttemptSignals = { cancelled: AbortSignal; shutDown: AbortSignal }

/**
 * A first attempt that is made without a workflow, in `slot`. `claim`: `owner` has the row under the lease of its
 * commit, and this is what it read there; null when the row is to be claimed.
 */
export type InlineAttempt = { owner: string; claim: Claim | null; slot: Slot }

/** `inline` is null for attempts that a workflow asks for. */
export type MakeAttempt = (
  request: AttemptRequest,
  signals: AttemptSignals,
  inline?: InlineAttempt | null,
) => Promise<AttemptOutcome>
