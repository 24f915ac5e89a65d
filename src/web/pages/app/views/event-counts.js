import { html } from '../lib/html.js'

/** @import { EventSummary, Template } from '../types.d.ts' */

/** What is wrong comes first. */
const SHOWN = /** @type {const} */ ([
  ['failed', 'bad', 'permanently failed'],
  ['waiting', 'warn', 'waiting'],
  ['inProgress', 'busy', 'in progress'],
  ['pending', 'calm', 'accepted'],
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
    ([name, tone, words]) =>
      html`<span class="mark ${tone}">${deliveries[name].toLocaleString('en-GB')} ${words}</span> `,
  )}`
}
