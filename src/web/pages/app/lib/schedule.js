import { duration } from './times.js'

/** @import { Delivery, Session } from '../types.d.ts' */

/**
 * What a retry costs a delivery: which attempt it makes, and what follows if that fails.
 * @param {Pick<Session, 'retryWaitsMs'>} session
 * @param {Pick<Delivery, 'state' | 'attemptCount'>} delivery
 */
export function retryInWords(session, { state, attemptCount }) {
  const total = session.retryWaitsMs.length + 1
  if (state === 'in_progress') return 'An attempt is in progress. If it fails, the next one is made at once.'
  if (attemptCount >= total)
    return `It has had its ${String(total)} attempts: this makes one more now. If that fails, the delivery is permanently failed.`
  const number = attemptCount + 1
  return `This makes attempt ${String(number)} of ${String(total)} now. If it fails, ${whatFollows(session, number)}.`
}

/**
 * What follows the failure of attempt `number`: `the next follows 30 minutes later`.
 * @param {Pick<Session, 'retryWaitsMs'>} session
 * @param {number} number
 */
export function whatFollows({ retryWaitsMs }, number) {
  const waitMs = retryWaitsMs[number - 1]
  return waitMs === undefined
    ? 'the delivery is permanently failed'
    : `the next follows ${duration(waitMs)} later`
}
