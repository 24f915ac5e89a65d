import type { DataSource } from 'typeorm'
import type { DatabaseClock } from '../db/database-clock.ts'
import type { AttemptKey, Claim } from '../db/queries/attempts.ts'
import type { AttemptOutcome } from '../domain/attempt-outcome.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import type { HttpClient } from '../outbound/http-client.ts'
import type { SecretBox } from '../secret-box.ts'
import type { IncidentWorkflows } from '../temporal/incident-workflows.ts'
import type { HandedOver } from './handed-over.ts'
import type { RecordFirstSuccess } from './record-first-successes.ts'
import type { IncidentTurns } from './turns.ts'
import type { WebhookGate } from './webhook-gate.ts'
import type { WebhookWatch } from './webhook-watch.ts'

/** What an attempt needs of the house. `attemptTimeoutMs` is the deadline of one whole POST. */
export type AttemptDependencies = {
  dataSource: DataSource
  httpClient: HttpClient
  secretBox: SecretBox
  logger: Logger
  metrics: Metrics
  attemptTimeoutMs: number
  gate: WebhookGate
  turns: IncidentTurns
  incidentWorkflows: IncidentWorkflows
  watch: WebhookWatch
  handedOver: HandedOver
  recordFirstSuccess: RecordFirstSuccess
  clock: DatabaseClock
}

export type AttemptRequest = AttemptKey & {
  webhookId: string
  /** Hold the attempt until that Unix ms of the database's clock, but never longer than `atMostMs`. */
  hold: { untilMs: number; atMostMs: number } | null
  /** Make it only if the row says that its time has come: the caller was woken and does not know what for. */
  onlyIfDue: boolean
  /** The gate of its webhook turned it away before: whatever delay it has is not ours. Workflows of 0.1 do not say. */
  turnedAway?: boolean
}

/**
 * `cancelled`: nobody wants the attempt of this process any more, unless its POST has begun. `shutDown`: this process
 * ends now.
 */
export type AttemptSignals = { cancelled: AbortSignal; shutDown: AbortSignal }

/**
 * A first attempt that is made beside the engine, for a delivery that has no workflow yet. `held`: `owner` has it under
 * the lease of its commit, and this is what it read there; null when the row is to be claimed. `posted` is called when
 * its POST is over, before it is recorded.
 */
export type Beside = { owner: string; held: Claim | null; posted: () => void }

/** `beside` is null for attempts that a workflow asks for. */
export type MakeAttempt = (
  request: AttemptRequest,
  signals: AttemptSignals,
  beside?: Beside | null,
) => Promise<AttemptOutcome>
