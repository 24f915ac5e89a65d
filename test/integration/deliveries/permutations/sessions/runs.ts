import type { EntityManager } from 'typeorm'
import { recordAttempts } from '../../../../../src/deliveries/attempt/record-under-lock.ts'
import { stopUnwanted } from '../../../../../src/deliveries/protocol/change-deliveries.ts'
import { claimAttempts, releaseRuns, renewLeases } from '../../../../../src/deliveries/protocol/claim.ts'
import { recordFirstSuccesses } from '../../../../../src/deliveries/protocol/record-attempts.ts'
import { stateAfterAttempt } from '../../../../../src/domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../../../../../src/domain/retry-schedule.ts'
import { deliveryId, LEASE_MS, ORGANISATION, RUNS, type RunName } from '../rows.ts'
import { alone, locks, OF_WEBHOOK, underLock, type Session } from './session.ts'

type Claimed = { number?: number; isWorkflow?: boolean }

/** Runs of attempt `number` of these deliveries, in one statement. */
export function claim(run: RunName, places: readonly number[], options: Claimed = {}): Session {
  const { number = 1, isWorkflow = false } = options
  const session = alone(async (manager) => {
    const runs = places.map((place) => ({
      organisationId: ORGANISATION,
      deliveryId: deliveryId(place),
      number,
      // Each run has an id of its own.
      owner: places.length === 1 ? RUNS[run] : RUNS[run].replace(/0$/, String(place)),
      isWorkflow,
    }))
    const claims = await claimAttempts(manager, runs, LEASE_MS)
    return { claimed: places.filter((_, index) => claims[index] !== null) }
  })
  return Object.assign(session, { isRepeated: true as const })
}

/** What a run does whose claim was refused, since the webhook takes no such delivery. */
export const stop: Session = underLock(async (manager) => ({
  answer: await stopUnwanted(manager, OF_WEBHOOK),
}))

export function release(run: RunName, places: readonly number[], { hasPosted = false } = {}): Session {
  return alone(async (manager) => {
    const owner = RUNS[run]
    await releaseRuns(
      manager,
      places.map((place) => ({ deliveryId: deliveryId(place), owner, hasPosted })),
    )
    return { released: places }
  })
}

export function renew(run: RunName, place: number): Session {
  return alone(async (manager) => {
    await renewLeases(manager, [{ deliveryId: deliveryId(place), owner: RUNS[run] }], LEASE_MS)
    return {}
  })
}

type Recorded = { number?: number; followAfterMs?: number | null }

function recordOf(run: RunName, place: number, number: number, hasSucceeded: boolean) {
  return {
    organisationId: ORGANISATION,
    deliveryId: deliveryId(place),
    number,
    trigger: 'schedule' as const,
    url: 'https://receiver.example.com/',
    startedAt: new Date(),
    durationMs: 1,
    failureCode: hasSucceeded ? null : ('http_status' as const),
    statusCode: hasSucceeded ? 200 : 500,
    error: null,
    response: null,
    owner: RUNS[run],
    next: stateAfterAttempt(hasSucceeded, number),
    dueInMs: waitAfterAttempt(number),
  }
}

export function recordFailure(run: RunName, place: number, options: Recorded = {}): Session {
  const { number = 1, followAfterMs = null } = options
  return underLock(async (manager) => {
    const ended = [recordOf(run, place, number, false)]
    const [recorded] = await recordAttempts(manager, OF_WEBHOOK, ended, followAfterMs)
    const { result, toSignal } = recorded!
    if (result === null || !('state' in result)) return { answer: 'superseded' }
    return { failed: place, answer: { state: result.state, isSignalled: toSignal !== null } }
  })
}

/** As a run records it: without the lock where it can. */
export function recordSuccess(run: RunName, place: number, options: Recorded = {}): Session {
  const { number = 1, followAfterMs = null } = options
  return async (dataSource) => {
    const record = recordOf(run, place, number, true)
    if (number === 1) {
      const first = dataSource.transaction((manager) =>
        recordFirstSuccesses(manager, [record], followAfterMs),
      )
      const [isRecorded] = await first
      if (isRecorded === true) return { confirmed: place }
    }
    const write = (manager: EntityManager) => recordAttempts(manager, OF_WEBHOOK, [record], followAfterMs)
    const [recorded] = await locks.transact(dataSource, OF_WEBHOOK, write, 0)
    return { confirmed: place, answer: recorded!.result === null ? 'recorded before' : 'recorded' }
  }
}
