import { html, nothing } from '../lib/html.js'
import { deliveriesLink } from '../lib/links.js'
import { plural } from '../lib/times.js'

/** @import { App, Failures, Template } from '../types.d.ts' */

/**
 * Failed attempts by their cause: how many, since when, what to do about it, and the deliveries behind them.
 * @param {App} app
 * @param {string} webhookId
 * @param {Failures} failures
 * @returns {Template}
 */
export function renderFailures(app, webhookId, { causes, isCapped }) {
  if (causes.length === 0) return nothing
  return html`<ul class="plain causes">
      ${causes.map((cause) => html`<li>${renderCause(app, webhookId, cause)}</li>`)}
    </ul>
    ${isCapped ? html`<p class="hint">There may be more: the latest 1,000 failed attempts are counted.</p>` : nothing}`
}

/**
 * @param {App} app
 * @param {string} webhookId
 * @param {Failures['causes'][number]} cause
 */
function renderCause({ times }, webhookId, cause) {
  const { failureCode, error, cure, failedAttempts, deliveries, firstAt, lastAt } = cause
  const link = deliveriesLink(webhookId, {
    failureCode,
    attemptedSince: firstAt,
    attemptedUntil: new Date(Date.parse(lastAt) + 1).toISOString(),
  })
  const last = failedAttempts === 1 ? nothing : html`, last ${times.ago(lastAt)}`
  return html`<p>
      <b class="count">${failedAttempts.toLocaleString()} ×</b>
      <span>${error ?? failureCode}</span>
      <span class="faint">since ${times.short(firstAt)}${last}</span>
      <a href=${link}>${plural(deliveries, 'delivery')}</a>
    </p>
    <p class="hint">${cure}</p>`
}
