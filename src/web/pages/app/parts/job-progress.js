import { html } from '../lib/html.js'
import { ifAllowed } from '../lib/if-allowed.js'
import { plural } from '../lib/times.js'

/** @import { Replay, RetryJob, Template } from '../types.d.ts' */

/** @typedef {RetryJob | Replay} Job */

/**
 * How far a retry job or a replay is, by outcome.
 * @param {Job} job
 * @returns {Template}
 */
export function renderProgress(job) {
  const { done, total } = job
  return html`<p class="progress" role="status">${jobMark(job)} ${progressInWords(job)}</p>
    <progress aria-label="Progress" max=${Math.max(total, 1)} .value=${total === 0 ? 1 : done}></progress>`
}

/** @param {Pick<Job, 'state'>} job */
export function jobMark({ state }) {
  if (state === 'cancelled') return html`<span class="mark">Cancelled</span>`
  return state === 'done'
    ? html`<span class="mark good">Done</span>`
    : html`<span class="mark busy">In progress</span>`
}

/**
 * `7 of 12 deliveries attempted: 6 succeeded, 1 failed`
 * @param {Job} job
 */
export function progressInWords({ done, total, succeeded, failed }) {
  const count = (/** @type {number} */ many) => many.toLocaleString()
  const notNeeded = Math.max(0, done - succeeded - failed)
  const outcomes = [
    `${count(succeeded)} succeeded`,
    `${count(failed)} failed`,
    ...(notNeeded === 0 ? [] : [`${count(notNeeded)} not needed`]),
  ]
  return `${count(done)} of ${plural(total, 'delivery')} attempted: ${outcomes.join(', ')}`
}

const PREFIX = 'posthorn.job.'

/**
 * Remembers the retry job of an action for as long as this tab is open, so that its progress can be shown again.
 * @param {string} action
 * @param {string} jobId
 */
export function rememberJob(action, jobId) {
  ifAllowed(() => sessionStorage.setItem(PREFIX + action, jobId))
}

/**
 * @param {string} action
 * @returns {string | null}
 */
export function recallJob(action) {
  return ifAllowed(() => sessionStorage.getItem(PREFIX + action))
}

/** @param {string} action */
export function forgetJob(action) {
  ifAllowed(() => sessionStorage.removeItem(PREFIX + action))
}

/**
 * The jobs that are remembered under `ACTION:…`.
 * @param {string} action
 * @returns {string[]} their ids
 */
export function jobsOf(action) {
  const prefix = `${PREFIX}${action}:`
  return (ifAllowed(() => Object.keys(sessionStorage)) ?? [])
    .filter((key) => key.startsWith(prefix))
    .map((key) => key.slice(prefix.length))
    .sort()
}
