import { html, nothing } from '../lib/html.js'
import { deliveriesLink, placeLink } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { recallJob } from '../lib/running-jobs.js'
import { duration } from '../lib/times.js'
import { ACTIONS, openAction, webhookAction } from './actions.js'
import { createActivity } from './activity.js'
import { webhookIds } from './delivery-parts.js'
import { isBackedUp, renderFact, stateInWords } from '../parts/state-mark.js'
import { createLatestAttempt } from './latest-attempt.js'
import { openReplay } from './replays.js'

/** @import { App, DeliveryState, Overview, Tab, Template } from '../types.d.ts' */

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
