import { ApiProblem } from '../lib/api.js'
import { html, nothing } from '../lib/html.js'
import { deliveryLink } from '../lib/links.js'
import { milliseconds } from '../lib/times.js'
import { createPayload } from '../parts/payload.js'
import { mark } from '../parts/state-mark.js'

/** @import { App, DeliveryDetail, Overview } from '../types.d.ts' */

/** @typedef {NonNullable<Overview['latestAttempt']>} Latest */

/**
 * What the webhook's latest attempt was, with the whole error message and the payload (spec 6.4).
 * @param {App} app
 * @param {string} webhookId
 */
export function createLatestAttempt(app, webhookId) {
  /** @type {Latest | null} */
  let latest = null
  /** The attempt that `detail` and `problem` are about. */
  let fetched = ''
  /** @type {DeliveryDetail | null} */
  let detail = null
  let problem = ''
  const payload = createPayload(app)

  /** @param {Latest} wanted */
  const fetchDetail = async ({ deliveryId, eventKey }) => {
    try {
      detail = await app.api.delivery(webhookId, deliveryId)
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.problem.status !== 403) throw error
      problem = `The payload of ${eventKey} is only for members with ${(error.problem.missingPermissions ?? []).join(', ')}.`
    }
  }
  return {
    /**
     * Asks for the payload where the attempt is another one than before.
     * @param {Latest | null} next
     */
    async show(next) {
      latest = next
      const wanted = next === null ? '' : `${next.deliveryId} ${String(next.number)}`
      if (wanted === fetched) return
      detail = null
      problem = ''
      if (next !== null) await fetchDetail(next)
      fetched = wanted
    },
    render() {
      if (latest === null)
        return html`<section class="card">
          <h2>Latest attempt</h2>
          <p class="faint">
            None so far. Publish an event that this webhook is subscribed to, or send a test event.
          </p>
        </section>`
      const { outcome, number, attemptedAt, statusCode, error, eventKey, deliveryId } = latest
      const made = detail?.attempts.find((attempt) => attempt.number === number)
      return html`<section class="card latest">
        <div class="bar">
          <h2>Latest attempt</h2>
          <a href=${deliveryLink(webhookId, deliveryId)}>Whole delivery</a>
        </div>
        <p>
          ${outcome === 'succeeded' ? mark('good', 'Succeeded') : mark('bad', 'Failed')}
          <span class="key">${eventKey}</span> attempt ${number},
          ${app.times.ago(attemptedAt)}${statusCode === null ? nothing : html`, HTTP ${statusCode}`}${made === undefined ? nothing : html`, ${milliseconds(made.durationMs)}`}
        </p>
        ${error === null ? nothing : html`<pre class="bad wrap">${error}</pre>`}
        ${detail === null || detail.payloadText === null ? nothing : payload.render(detail.payloadText)}
        ${problem === '' ? nothing : html`<p class="hint">${problem}</p>`}
      </section>`
    },
  }
}
