import { ApiProblem } from '../lib/api.js'
import { html, nothing } from '../lib/html.js'
import { lackingToManage, MANAGE, may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { deliveryLink } from '../lib/links.js'
import { address } from '../parts/address.js'
import { inWords, problemNote } from '../parts/problem.js'
import { webhookMark } from '../parts/state-mark.js'
import {
  discardFailedAction,
  forceAction,
  openAction,
  resumeStoppedAction,
  retryFailedAction,
} from './actions.js'
import { createActivity } from './activity.js'
import { createDeliveries } from './deliveries.js'
import { createIncidents } from './incidents.js'
import { createLatestAttempt } from './latest-attempt.js'
import { createSecret } from './secret.js'
import { enabledSwitch } from './webhook-card.js'
import { openWebhookForm } from './webhook-form.js'

/** @import { App, Overview, Template, View } from '../types.d.ts' */

const EVERY_MS = 2_000

/**
 * One webhook: how it stands, what it did, and what can be done.
 * @param {App} app
 * @param {string} id
 * @returns {View}
 */
export function createWebhookView(app, id) {
  /** @type {Overview | null} */
  let webhook = null
  let problem = ''
  let isGone = false
  const parts = {
    activity: createActivity(app, id),
    latest: createLatestAttempt(app, id),
    deliveries: createDeliveries(app, id),
    incidents: createIncidents(app, id),
    secret: createSecret(app, id),
  }
  const load = async () => {
    try {
      const { data } = await app.api.overview()
      webhook = data.find((candidate) => candidate.id === id) ?? null
      isGone = webhook === null
      problem = ''
      await Promise.all([
        parts.latest.show(webhook?.latestAttempt ?? null),
        ...(isGone ? [] : [parts.deliveries.refresh(), parts.incidents.refresh()]),
      ])
    } catch (error) {
      isGone = error instanceof ApiProblem && error.problem.status === 404
      problem = isGone ? '' : inWords(error)
      throw error
    } finally {
      app.update()
    }
  }
  const asking = poll(load, EVERY_MS)

  return {
    title: 'Webhook',
    stop() {
      asking.stop()
      parts.activity.stop()
    },
    render() {
      if (isGone) return gone()
      return html`<p class="crumbs"><a href="/developer">Webhooks</a></p>
        ${problemNote(problem)}
        ${
          webhook === null
            ? html`<h1 tabindex="-1">Webhook</h1>
                <p class="faint">Loading …</p>`
            : body(webhook)
        }`
    },
  }

  /** @param {Overview} shown */
  function body(shown) {
    return html`${heading(app, shown, asking.refresh)} ${parts.incidents.renderOpen(shown)}
      ${actions(app, shown, asking.refresh)}
      <div class="columns">
        <div>${parts.latest.render()} ${parts.deliveries.render()}</div>
        <div>
          ${parts.activity.render()} ${subscription(shown)} ${parts.secret.render(shown)}
          ${parts.incidents.render()}
        </div>
      </div>`
  }
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 * @returns {Template}
 */
function heading(app, webhook, refresh) {
  const mayChange = lackingToManage(app.session, webhook.subscribedEventKeys).length === 0
  return html`<div class="heading">
    <div>
      <h1 tabindex="-1">${address(webhook.url)}</h1>
      <p>${webhookMark(webhook, app.times)} ${enabledSwitch(app, webhook, refresh)}</p>
    </div>
    ${
      may(app.session, MANAGE)
        ? html`<div class="buttons">
            <button type="button" @click=${() => sendTest(app, webhook)} ?disabled=${!webhook.enabled}>
              Send a test event
            </button>
            ${
              mayChange
                ? html`<button
                    type="button"
                    @click=${() => openWebhookForm(app, webhook, () => void refresh())}
                  >
                    Edit
                  </button>`
                : nothing
            }
            <button type="button" class="danger" @click=${() => openDelete(app, webhook)}>Delete</button>
          </div>`
        : nothing
    }
  </div>`
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 * @returns {Template}
 */
function actions(app, webhook, refresh) {
  const { enabled, waitingForRetry, permanentlyFailed, stopped } = webhook
  const fact = (/** @type {string} */ label, /** @type {number} */ count, /** @type {string} */ tone) =>
    html`<div class=${count > 0 ? tone : ''}>
      <dt>${label}</dt>
      <dd>${count.toLocaleString('en-GB')}</dd>
    </div>`
  return html`<section class="card status" aria-label="Delivery status">
    <dl class="facts">
      ${fact('Waiting for retry', waitingForRetry, 'warn')}
      ${fact('Permanently failed', permanentlyFailed, 'bad')} ${fact('Stopped', stopped, '')}
    </dl>
    ${
      may(app.session, MANAGE)
        ? html`<div class="buttons">
            <button
              type="button"
              ?disabled=${!enabled || permanentlyFailed === 0}
              @click=${() => openAction(app, retryFailedAction(app, webhook), refresh)}
            >
              Retry failed
            </button>
            <button
              type="button"
              ?disabled=${!enabled || waitingForRetry + permanentlyFailed === 0}
              @click=${() => openAction(app, forceAction(app, webhook), refresh)}
            >
              Force retry
            </button>
            <button
              type="button"
              ?disabled=${!enabled || stopped === 0}
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
          </div>`
        : nothing
    }
  </section>`
}

/** @param {Overview} webhook */
function subscription({ subscribedEventKeys }) {
  const isAll = subscribedEventKeys[0] === '*'
  return html`<section class="card">
    <h2>Event keys</h2>
    ${
      isAll
        ? html`<p>All events, those to come too.</p>`
        : html`<p class="keys">
            ${subscribedEventKeys.map((key) => html`<span class="key">${key}</span> `)}
          </p>`
    }
  </section>`
}

/**
 * @param {App} app
 * @param {Overview} webhook
 */
async function sendTest(app, { id }) {
  try {
    const { deliveryId } = await app.api.sendTest(id)
    app.go(new URL(deliveryLink(id, deliveryId), location.href).search)
    app.say('A test event is on its way.')
  } catch (error) {
    app.say(inWords(error))
  }
}

/**
 * @param {App} app
 * @param {Overview} webhook
 */
function openDelete(app, { id, name }) {
  let problem = ''
  const remove = async () => {
    try {
      await app.api.remove(id)
      app.go('')
      app.say('Webhook deleted.')
    } catch (error) {
      problem = inWords(error)
      app.update()
    }
  }
  app.openDialog({
    label: 'Delete webhook',
    render: () =>
      html`<h2>Delete ${name}?</h2>
        <p>
          Nothing is sent to it any more, what waits is stopped, and its signing secret is destroyed. This
          cannot be taken back.
        </p>
        ${problemNote(problem)}
        <div class="buttons end">
          <button type="button" @click=${() => app.closeDialog()}>Cancel</button>
          <button type="button" class="danger" @click=${remove}>Delete webhook</button>
        </div>`,
  })
}

function gone() {
  return html`<section class="empty">
    <h1 tabindex="-1">No such webhook</h1>
    <p>It was deleted, or it belongs to another organisation.</p>
    <p><a href="/developer">All webhooks</a></p>
  </section>`
}
