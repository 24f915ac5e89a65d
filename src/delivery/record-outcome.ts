import {
  findStanding,
  recordFailure,
  recordSuccess,
  type AttemptRecord,
  type Claim,
} from '../db/queries/attempts.ts'
import { nextAttemptAt, stateAfterAttempt, type AttemptOutcome } from '../domain/attempt-outcome.ts'
import type { AttemptDependencies, AttemptRequest } from './attempt-request.ts'
import { untilDatabaseAnswers } from './patience.ts'
import type { Sent } from './send-signed.ts'
import { standingOutcome } from './standing-outcome.ts'
import { SWEEP_AFTER_MS } from './timing.ts'

/**
 * Writes the attempt and the delivery's new state, and says what became of it. Once a POST was made its outcome is
 * worth waiting for: this goes on until the database takes it.
 * When another run recorded the same attempt first, that record stands and is returned.
 */
export async function recordOutcome(
  dependencies: Pick<AttemptDependencies, 'dataSource' | 'logger'>,
  request: AttemptRequest,
  claim: Claim,
  sent: Sent,
): Promise<AttemptOutcome> {
  const { result } = sent
  const durationMs = Math.round(result.durationMs)
  const outcome = await untilDatabaseAnswers(() =>
    write(
      dependencies,
      { ...request, ...claim, ...result, durationMs, trigger: claim.asked ? 'retry' : 'schedule' },
      sent,
    ),
  )
  dependencies.logger.info(
    {
      event: 'delivery.attempted',
      organisationId: request.organisationId,
      webhookId: claim.webhookId,
      deliveryId: request.deliveryId,
      eventKey: claim.eventKey,
      attempt: request.number,
      state: outcome.state,
      statusCode: result.statusCode,
      failureCode: result.failureCode,
      durationMs,
      // How long after its time a retry was begun.
      lateMs: request.hold === null ? null : result.startedAt.getTime() - request.hold.untilMs,
    },
    'delivery.attempted',
  )
  return outcome
}

async function write(
  { dataSource }: Pick<AttemptDependencies, 'dataSource'>,
  record: AttemptRecord & { webhookId: string },
  { result, endedAtMs }: Sent,
): Promise<AttemptOutcome> {
  const { number: attempts, failureCode, statusCode } = record
  const state = stateAfterAttempt(result.succeeded, attempts)
  if (state === 'completed') {
    if (await recordSuccess(dataSource, record)) return { state, attempts, failureCode, statusCode }
    return standingOutcome(await findStanding(dataSource, record), attempts)
  }
  const dueAtMs = nextAttemptAt(endedAtMs, attempts)
  const next = {
    state,
    nextAttemptAt: dueAtMs === null ? null : new Date(dueAtMs),
    sweepAfterMs: SWEEP_AFTER_MS,
  }
  const written = await recordFailure(dataSource, record, next)
  if (written === null) return standingOutcome(await findStanding(dataSource, record), attempts)
  if (written.state === 'waiting') {
    return {
      state: 'waiting',
      attempts,
      endedAtMs,
      sinceEndMs: Date.now() - endedAtMs,
      immediately: written.asked,
      failureCode,
      statusCode,
    }
  }
  return { state: written.state, attempts, failureCode, statusCode }
}
