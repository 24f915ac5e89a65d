import { html, svg } from '../lib/html.js'
import { duration, plural } from '../lib/times.js'

/** @import { DeliveryState, Overview, Template, Times } from '../types.d.ts' */

/** Strokes on a square of 16; each differs from the others in shape, not only in colour. */
const PATHS = {
  good: 'M2.5 8.5l3.5 3.5 7.5-8',
  bad: 'M8 2L14.5 13.5H1.5zM8 6.5v3.2M8 11.4v.4',
  warn: 'M8 1.8a6.2 6.2 0 1 0 .01 0M8 4.5V8l2.5 1.8',
  busy: 'M13.5 6A6 6 0 0 0 2.6 5M2.5 10a6 6 0 0 0 10.9 1M2.5 2v3.2h3.2M13.5 14v-3.2h-3.2',
  calm: 'M8 1.8a6.2 6.2 0 1 0 .01 0M5 8h6',
  off: 'M8 1.5v6M4.4 4a5.5 5.5 0 1 0 7.2 0',
  lock: 'M3.5 7.5h9v6h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5',
}

/** @typedef {keyof typeof PATHS} IconName */

/**
 * An icon next to a text that says the same.
 * @param {IconName} name
 * @returns {Template}
 */
export function icon(name) {
  return svg`<svg class="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path d=${PATHS[name]} /></svg>`
}

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
 * How a webhook stands, in one mark: what is wrong comes first. In short: for a row of a list, in a few letters.
 * @param {Overview} webhook
 * @param {Times} times
 * @param {boolean} [isShort]
 * @returns {Template}
 */
export function webhookMark(webhook, times, isShort = false) {
  const { enabled, status, openIncident, latestAttempt, operatorHold } = webhook
  const when = isShort ? times.short : times.at
  if (operatorHold !== null) return mark('warn', html`Held since ${when(operatorHold.since)}`, 'off')
  if (openIncident !== null)
    return status === 'degraded'
      ? mark('warn', html`Degraded since ${when(openIncident.openedAt)}`)
      : mark('bad', html`Failing since ${when(openIncident.openedAt)}`)
  if (!enabled) return mark('calm', 'Switched off', 'off')
  if (isShort && isBackedUp(webhook))
    return mark('warn', `First attempt waits ${duration(webhook.oldestWaitingForFirstAttemptMs ?? 0)}`)
  if (latestAttempt === null) return mark('calm', isShort ? 'No attempts' : 'Nothing delivered yet')
  // No incident is open after a switch-off or a discard either: neither makes the endpoint healthy.
  if (latestAttempt.outcome === 'failed')
    return mark('warn', isShort ? 'Last failed' : 'No open incident, last attempt failed')
  return mark('good', 'Healthy')
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

/**
 * A count among the facts of a list, with its tone where there are any.
 * @param {{ label: string, count: number, tone?: string | undefined, note?: string | undefined, link?: string }} fact
 * @returns {Template}
 */
export function renderFact({ label, count, tone = '', note = '', link }) {
  const words = count.toLocaleString()
  return html`<div class=${count > 0 ? tone : ''}>
    <dt>${label}</dt>
    <dd>
      ${link === undefined || count === 0 ? words : html`<a href=${link}>${words}</a>`}
      ${note === '' ? '' : html`<span class="hint">${note}</span>`}
    </dd>
  </div>`
}
