import { html } from '../lib/html.js'
import { duration } from '../lib/times.js'
import { isBackedUp } from './first-attempts.js'
import { icon } from './icon.js'

/** @import { DeliveryState, Overview, Template, Times } from '../types.d.ts' */
/** @import { IconName } from './icon.js' */

/** @typedef {'calm' | 'busy' | 'warn' | 'good' | 'bad'} Tone */

/** @type {Record<DeliveryState, { words: string, tone: Tone, icon?: IconName }>} */
const STATES = {
  pending: { words: 'Waiting for first attempt', tone: 'calm' },
  in_progress: { words: 'In progress', tone: 'busy' },
  waiting: { words: 'Waiting for retry', tone: 'warn' },
  completed: { words: 'Completed', tone: 'good' },
  failed: { words: 'Permanently failed', tone: 'bad' },
  stopped: { words: 'Stopped', tone: 'calm', icon: 'off' },
}

/** @param {DeliveryState} state */
export const stateInWords = (state) => STATES[state].words

/**
 * @param {DeliveryState} state
 * @returns {Template}
 */
export function stateMark(state) {
  const { words, tone, icon: name } = STATES[state]
  return mark(tone, words, name)
}

/**
 * How a webhook stands, in one mark: what is wrong comes first.
 * @param {Overview} webhook
 * @param {Times} times
 * @returns {Template}
 */
export function webhookMark(webhook, times) {
  const { enabled, openIncident, latestAttempt, operatorHold } = webhook
  if (operatorHold !== null) return mark('warn', html`Held since ${times.at(operatorHold.since)}`, 'off')
  if (openIncident !== null) return incidentMark(webhook, times.at(openIncident.openedAt))
  if (!enabled) return mark('calm', 'Switched off', 'off')
  if (latestAttempt === null) return mark('calm', 'Nothing delivered yet')
  // No incident is open after a switch-off or a discard either: neither makes the endpoint healthy.
  if (latestAttempt.outcome === 'failed') return mark('warn', 'No open incident, last attempt failed')
  return mark('good', 'Healthy')
}

/**
 * @param {Overview} webhook
 * @param {Template} since
 */
function incidentMark({ status }, since) {
  return status === 'degraded'
    ? mark('warn', html`Degraded since ${since}`)
    : mark('bad', html`Failing since ${since}`)
}

/**
 * The same in a few letters, for a row of a list.
 * @param {Overview} webhook
 * @param {Times} times
 * @returns {Template}
 */
export function webhookMarkInShort(webhook, times) {
  const {
    enabled,
    openIncident,
    latestAttempt,
    oldestWaitingForFirstAttemptMs: oldestMs,
    operatorHold,
  } = webhook
  if (operatorHold !== null) return mark('warn', html`Held since ${times.short(operatorHold.since)}`, 'off')
  if (openIncident !== null) return incidentMark(webhook, times.short(openIncident.openedAt))
  if (!enabled) return mark('calm', 'Switched off', 'off')
  if (oldestMs !== null && isBackedUp(webhook))
    return mark('warn', `First attempt waits ${duration(oldestMs)}`)
  if (latestAttempt === null) return mark('calm', 'No attempts')
  return latestAttempt.outcome === 'failed' ? mark('warn', 'Last failed') : mark('good', 'Healthy')
}

/**
 * @param {Tone} tone
 * @param {Template} words
 * @param {IconName} [name] the icon of the tone where none is named
 * @returns {Template}
 */
export function mark(tone, words, name = tone) {
  return html`<span class="mark ${tone}">${icon(name)}<span>${words}</span></span>`
}
