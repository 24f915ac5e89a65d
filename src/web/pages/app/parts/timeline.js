import { html, nothing } from '../lib/html.js'
import { duration, milliseconds } from '../lib/times.js'
import { copyButton } from './copy-button.js'

/** @import { App, Attempt, DeliveryDetail, Template } from '../types.d.ts' */

/**
 * The attempts on the schedule: those that were made with what came back, the next one with its time, and those that
 * would follow. What people asked for beyond the schedule stands after it.
 * @param {App} app
 * @param {DeliveryDetail} delivery
 * @returns {Template}
 */
export function renderTimeline(app, delivery) {
  const scheduled = app.session.retryWaitsMs.length + 1
  const last = Math.max(scheduled, delivery.attempts.length)
  const numbers = Array.from({ length: last }, (_, index) => index + 1)
  return html`<ol class="timeline">
    ${numbers.map((number) => renderStep(app, delivery, number))}
  </ol>`
}

/**
 * @param {App} app
 * @param {DeliveryDetail} delivery
 * @param {number} number
 */
function renderStep(app, delivery, number) {
  const made = delivery.attempts.find((attempt) => attempt.number === number)
  if (made !== undefined) return html`<li class="made ${made.outcome}">${renderMade(app, made)}</li>`
  const isNext = number === delivery.attemptCount + 1
  const waitMs = app.session.retryWaitsMs[number - 2]
  if (isNext && delivery.completedAt === null)
    return html`<li class="next">
      <p><b>Attempt ${number}</b> ${nextInWords(app, delivery)}</p>
    </li>`
  const wait = waitMs === undefined ? '' : `${duration(waitMs)} after the one before`
  return html`<li class="later">
    <p><b>Attempt ${number}</b> <span>${delivery.completedAt === null ? wait : 'not needed'}</span></p>
  </li>`
}

/**
 * @param {App} app
 * @param {DeliveryDetail} delivery
 */
function nextInWords({ times }, { state, nextAttemptAt }) {
  if (state === 'in_progress') return html`<span class="mark busy">Under way</span>`
  if (nextAttemptAt === null) return html`<span class="mark busy">Starting</span>`
  return html`<span class="mark warn">Due ${times.until(nextAttemptAt)}</span>
    <span class="faint">${times.at(nextAttemptAt)}</span>`
}

/**
 * @param {App} app
 * @param {Attempt} attempt
 */
function renderMade(app, attempt) {
  const { number, trigger, startedAt, durationMs, outcome, statusCode, error, response, url } = attempt
  const words = statusCode === null ? 'No answer' : `HTTP ${String(statusCode)}`
  return html`<p>
      <b>Attempt ${number}</b>
      <span class="mark ${outcome === 'succeeded' ? 'good' : 'bad'}">${words}</span>
      ${trigger === 'retry' ? html`<span class="mark calm">asked for by a person</span>` : nothing}
      <span class="faint">${app.times.at(startedAt)}, took ${milliseconds(durationMs)}</span>
    </p>
    ${error === null ? nothing : html`<p class="error">${error}</p>`}
    <details>
      <summary>${response === null ? 'Request' : 'Answer'}</summary>
      <p class="hint">POST ${url}</p>
      ${response === null ? nothing : renderResponse(app, response)}
    </details>`
}

/**
 * What the receiver sent, as text and never as anything else.
 * @param {App} app
 * @param {NonNullable<Attempt['response']>} response
 */
function renderResponse(app, { headers, body, truncated }) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return html`<h3>Headers</h3>
    <pre class="wrap" tabindex="0" role="region" aria-label="Headers of the answer">${lines.join('\n')}</pre>
    <div class="bar">
      <h3>Body</h3>
      ${body === '' ? nothing : copyButton(app, 'body of the answer', body)}
    </div>
    ${
      body === ''
        ? html`<p class="hint">Empty.</p>`
        : html`<pre class="wrap" tabindex="0" role="region" aria-label="Body of the answer">${body}</pre>`
    }
    ${truncated ? html`<p class="hint">It was longer; the rest is not kept.</p>` : nothing}`
}
