import { html } from '../lib/html.js'
import { stateInWords } from '../parts/state-mark.js'

/** @import { EventSummary, Template } from '../types.d.ts' */

/** What is wrong comes first. */
const SHOWN = /** @type {const} */ ([
  ['failed', 'bad', 'failed'],
  ['waiting', 'warn', 'waiting'],
  ['inProgress', 'busy', 'in_progress'],
  ['pending', 'calm', 'pending'],
  ['completed', 'good', 'completed'],
  ['stopped', 'calm', 'stopped'],
])

/**
 * How many deliveries of an event are in each state; states without any are left out.
 * @param {EventSummary['deliveries']} deliveries
 * @returns {Template}
 */
export function renderCounts(deliveries) {
  if (deliveries.total === 0) return html`<span class="faint">No webhook was subscribed</span>`
  return html`${SHOWN.filter(([name]) => deliveries[name] > 0).map(
    ([name, tone, state]) =>
      html`<span class="mark ${tone}"
        >${deliveries[name].toLocaleString()} ${stateInWords(state).toLowerCase()}</span
      > `,
  )}`
}
