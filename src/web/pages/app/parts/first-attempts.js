import { duration, plural } from '../lib/times.js'

/** @import { Overview } from '../types.d.ts' */

/** @typedef {Pick<Overview, 'waitingForFirstAttempt' | 'oldestWaitingForFirstAttemptMs'>} Waiting */

/** A first attempt usually begins within a second; what waits longer waits for its endpoint, or for Posthorn. */
const BACKED_UP_AFTER_MS = 5_000

/**
 * Whether first attempts wait for longer than they usually do.
 * @param {Waiting} webhook
 */
export function isBackedUp({ oldestWaitingForFirstAttemptMs: oldestMs }) {
  return oldestMs !== null && oldestMs >= BACKED_UP_AFTER_MS
}

/**
 * `167 deliveries wait for their first attempt, the oldest for 7 minutes`
 * @param {Waiting} webhook
 */
export function backlogInWords({ waitingForFirstAttempt: count, oldestWaitingForFirstAttemptMs: oldestMs }) {
  const wait = count === 1 ? 'waits for its first attempt' : 'wait for their first attempt'
  return `${plural(count, 'delivery')} ${wait}, the oldest for ${duration(oldestMs ?? 0)}`
}
