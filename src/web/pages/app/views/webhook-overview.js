import { html, nothing } from '../lib/html.js'
import { deliveriesLink, placeLink, deliveryLink } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { recallJob } from '../parts/job-progress.js'
import { duration, milliseconds } from '../lib/times.js'
import { ACTIONS, openAction, webhookAction } from './actions.js'
import { createActivity } from './activity.js'
import { webhookIds } from './delivery-parts.js'
import { isBackedUp, renderFact, stateInWords, mark } from '../parts/state-mark.js'
import { openReplay } from './replays.js'
import { ApiProblem } from '../lib/api.js'
import { createPayload } from '../parts/payload.js'

/** @import { App, DeliveryDetail, DeliveryState, Overview, Tab, Template } from '../types.d.ts' */

/**
 * How a webhook stands: what is open, its latest attempt, and the last 24 hours.
 * @param {App} app
 * @param {string} id
 * @returns {Tab}
 */
export function createWebhookOverview(app, id) {
  const [activity, latest] = [createActivity(app, id), createLatestAttempt(app, id)]
  return {
    refresh: ({ latestAttempt }) => latest.show(latestAttempt),
    stop: activity.stop,
    render: (webhook, refresh) =>
      html`${status(app, webhook, refresh)}
        <div class="columns">
          <div>
            ${latest.render()}
            <section class="card" aria-label="Ids">
              <h2>Ids</h2>
              <dl class="pairs ids">${webhookIds(app, id)}</dl>
            </section>
          </div>
          <div>${activity.render()}</div>
        </div>`,
  }
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 * @returns {Template}
 */
function status(app, webhook, refresh) {
  const { id, waitingForRetry, permanentlyFailed, stopped } = webhook
  const { waitingForFirstAttempt, oldestWaitingForFirstAttemptMs: oldestMs } = webhook
  /**
   * @param {DeliveryState} state
   * @param {number} count
   * @param {string} [tone]
   * @param {string} [note]
   */
  const fact = (state, count, tone, note) =>
    renderFact({ label: stateInWords(state), count, tone, note, link: deliveriesLink(id, { state }) })
  const oldest = isBackedUp(webhook) ? `the oldest for ${duration(oldestMs ?? 0)}` : ''
  return html`<section class="card status" aria-label="Delivery status">
    <dl class="facts">
      ${fact('pending', waitingForFirstAttempt, oldest === '' ? '' : 'warn', oldest)}
      ${fact('waiting', waitingForRetry, 'warn')} ${fact('failed', permanentlyFailed, 'bad')}
      ${fact('stopped', stopped)}
    </dl>
    ${may(app.session, MANAGE) ? actions(app, webhook, refresh) : nothing}
  </section>`
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 */
function actions(app, webhook, refresh) {
  const { id, enabled } = webhook
  /** @param {keyof typeof ACTIONS} name */
  const button = (name) => {
    const { button: words, open } = ACTIONS[name]
    const isPossible = (enabled || name === 'discard') && open(webhook) > 0
    // The progress of a job that was started here can be opened again.
    return html`<button
      type="button"
      ?disabled=${!isPossible && recallJob(`${name}:${id}`) === null}
      @click=${() => openAction(app, webhookAction(app, webhook, name), refresh)}
    >
      ${words}
    </button>`
  }
  return html`<div class="buttons">
    ${button('failed')} ${button('force')} ${button('stopped')} ${button('discard')}
    <button type="button" ?disabled=${!enabled} @click=${() => openReplay(app, webhook)}>
      Send past events
    </button>
    <a href=${placeLink('retries')}>Retry jobs</a>
  </div>`
}

/** @typedef {NonNullable<Overview['latestAttempt']>} Latest */

/**
 * What the webhook's latest attempt was, with the whole error message and the payload (spec 6.4).
 * @param {App} app
 * @param {string} webhookId
 */
function createLatestAttempt(app, webhookId) {
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
