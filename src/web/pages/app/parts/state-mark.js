import { html } from '../lib/html.js'

/** @import { DeliveryState, Overview, Template, Times } from '../types.d.ts' */

/** @type {Record<DeliveryState, { words: string, tone: string }>} */
const STATES = {
  pending: { words: 'Accepted', tone: 'calm' },
  in_progress: { words: 'In progress', tone: 'busy' },
  waiting: { words: 'Waiting for retry', tone: 'warn' },
  completed: { words: 'Completed', tone: 'good' },
  failed: { words: 'Permanently failed', tone: 'bad' },
  stopped: { words: 'Stopped', tone: 'calm' },
}

/** @param {DeliveryState} state */
export const stateInWords = (state) => STATES[state].words

/**
 * @param {DeliveryState} state
 * @returns {Template}
 */
export function stateMark(state) {
  return mark(STATES[state].tone, STATES[state].words)
}

/**
 * How a webhook stands, in one mark: what is wrong comes first.
 * @param {Overview} webhook
 * @param {Times} times
 * @returns {Template}
 */
export function webhookMark({ enabled, openIncident, latestAttempt }, times) {
  if (openIncident !== null) {
    return html`<span class="mark bad">Failing since ${times.at(openIncident.openedAt)}</span>`
  }
  if (!enabled) return mark('calm', 'Switched off')
  if (latestAttempt === null) return mark('calm', 'Nothing delivered yet')
  if (latestAttempt.outcome === 'failed') return mark('warn', 'Last attempt failed')
  return mark('good', 'Healthy')
}

/**
 * @param {string} tone
 * @param {string} words
 */
function mark(tone, words) {
  return html`<span class="mark ${tone}">${words}</span>`
}
