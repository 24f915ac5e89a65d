import { html, nothing } from '../lib/html.js'
import { deliveriesLink, retryJobsLink } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { recallJob } from '../lib/running-jobs.js'
import { duration } from '../lib/times.js'
import { nameOf } from '../parts/address.js'
import {
  discardFailedAction,
  forceAction,
  openAction,
  resumeStoppedAction,
  retryFailedAction,
} from './actions.js'
import { createActivity } from './activity.js'
import { webhookIds } from './delivery-parts.js'
import { isBackedUp } from '../parts/first-attempts.js'
import { createLatestAttempt } from './latest-attempt.js'
import { openReplay } from './replays.js'

/** @import { App, Overview, Tab, Template } from '../types.d.ts' */

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
   * @param {string} label
   * @param {string} state
   * @param {number} count
   * @param {string} tone
   * @param {string} [note]
   */
  const fact = (label, state, count, tone, note = '') =>
    html`<div class=${count > 0 ? tone : ''}>
      <dt>${label}</dt>
      <dd>
        ${count === 0 ? '0' : html`<a href=${deliveriesLink(id, { state })}>${count.toLocaleString()}</a>`}
        ${note === '' ? nothing : html`<span class="hint">${note}</span>`}
      </dd>
    </div>`
  return html`<section class="card status" aria-label="Delivery status">
    <dl class="facts">
      ${fact(
        'Waiting for first attempt',
        'pending',
        waitingForFirstAttempt,
        isBackedUp(webhook) ? 'warn' : '',
        oldestMs !== null && isBackedUp(webhook) ? `the oldest for ${duration(oldestMs)}` : '',
      )}
      ${fact('Waiting for retry', 'waiting', waitingForRetry, 'warn')}
      ${fact('Permanently failed', 'failed', permanentlyFailed, 'bad')}
      ${fact('Stopped', 'stopped', stopped, '')}
    </dl>
    ${may(app.session, MANAGE) ? actions(app, { ...webhook, name: nameOf(webhook) }, refresh) : nothing}
  </section>`
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 */
function actions(app, webhook, refresh) {
  const { enabled, waitingForRetry, permanentlyFailed, stopped } = webhook
  // A job that was started here can be looked at again.
  const runs = (/** @type {string} */ mode) => recallJob(`${mode}:${webhook.id}`) !== null
  return html`<div class="buttons">
    <button
      type="button"
      ?disabled=${!runs('failed') && (!enabled || permanentlyFailed === 0)}
      @click=${() => openAction(app, retryFailedAction(app, webhook), refresh)}
    >
      Retry failed
    </button>
    <button
      type="button"
      ?disabled=${!runs('force') && (!enabled || waitingForRetry + permanentlyFailed === 0)}
      @click=${() => openAction(app, forceAction(app, webhook), refresh)}
    >
      Force retry
    </button>
    <button
      type="button"
      ?disabled=${!runs('stopped') && (!enabled || stopped === 0)}
      @click=${() => openAction(app, resumeStoppedAction(app, webhook), refresh)}
    >
      Resume stopped
    </button>
    <button
      type="button"
      ?disabled=${permanentlyFailed === 0}
      @click=${() => openAction(app, discardFailedAction(app, webhook), refresh)}
    >
      Discard failed
    </button>
    <button type="button" ?disabled=${!enabled} @click=${() => openReplay(app, webhook)}>
      Send past events
    </button>
    <a href=${retryJobsLink()}>Retry jobs</a>
  </div>`
}
