import { html, nothing } from '../lib/html.js'
import { deliveryLink, webhookLink } from '../lib/links.js'
import { lackingToManage, MANAGE, may } from '../lib/permissions.js'
import { address } from '../parts/address.js'
import { inWords } from '../parts/problem.js'
import { webhookMark } from '../parts/state-mark.js'

/** @import { App, Overview, Template } from '../types.d.ts' */

/** More keys than that say less, not more. */
const KEYS_SHOWN = 4

/**
 * A webhook at a glance.
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 * @returns {Template}
 */
export function renderWebhookCard(app, webhook, refresh) {
  const { id, url, waitingForRetry, permanentlyFailed, stopped } = webhook
  return html`<article class="card webhook ${webhook.openIncident === null ? '' : 'failing'}">
    <div class="first">
      <h2><a href=${webhookLink(id)}>${address(url)}</a></h2>
      ${webhookMark(webhook, app.times)} ${enabledSwitch(app, webhook, refresh)}
    </div>
    <p class="keys">${eventKeys(webhook.subscribedEventKeys)}</p>
    <dl class="facts">
      <div class=${waitingForRetry > 0 ? 'warn' : ''}>
        <dt>Waiting for retry</dt>
        <dd>${waitingForRetry.toLocaleString('en-GB')}</dd>
      </div>
      <div class=${permanentlyFailed > 0 ? 'bad' : ''}>
        <dt>Permanently failed</dt>
        <dd>${permanentlyFailed.toLocaleString('en-GB')}</dd>
      </div>
      ${
        stopped === 0
          ? nothing
          : html`<div>
              <dt>Stopped</dt>
              <dd>${stopped.toLocaleString('en-GB')}</dd>
            </div>`
      }
      <div class="wide">
        <dt>Last attempt</dt>
        <dd>${lastAttempt(app, webhook)}</dd>
      </div>
    </dl>
  </article>`
}

/**
 * @param {readonly string[]} keys
 * @returns {Template}
 */
function eventKeys(keys) {
  if (keys[0] === '*') return html`<span class="key">* all events</span>`
  const hidden = keys.length - KEYS_SHOWN
  return html`${keys.slice(0, KEYS_SHOWN).map((key) => html`<span class="key">${key}</span>`)}
  ${hidden > 0 ? html`<span class="faint" title=${keys.slice(KEYS_SHOWN).join(', ')}>and ${hidden} more</span>` : nothing}`
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Template}
 */
function lastAttempt({ times }, { id, latestAttempt }) {
  if (latestAttempt === null) return html`<span class="faint">none so far</span>`
  const { outcome, eventKey, attemptedAt, statusCode, error, deliveryId } = latestAttempt
  const answer = statusCode === null ? (error ?? 'no answer') : `HTTP ${String(statusCode)}`
  return html`<a href=${deliveryLink(id, deliveryId)}
      ><span class=${outcome === 'succeeded' ? 'good' : 'bad'}
        >${outcome === 'succeeded' ? 'Succeeded' : 'Failed'}</span
      ></a
    >
    ${times.ago(attemptedAt)} <span class="faint">· ${eventKey} · ${answer}</span>`
}

/**
 * Switching off stops what waits, so it is asked about; switching on is not.
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 * @returns {Template}
 */
export function enabledSwitch(app, webhook, refresh) {
  const { id, name, enabled, subscribedEventKeys } = webhook
  // Switching off only reduces what the webhook does, so it needs no permission of its event keys.
  const maySwitchOff = enabled && may(app.session, MANAGE)
  const lacking = maySwitchOff ? [] : lackingToManage(app.session, subscribedEventKeys)
  const change = async () => {
    try {
      await app.api.change(id, { enabled: !enabled })
      app.say(enabled ? 'Switched off. What waited is stopped.' : 'Switched on.')
    } catch (error) {
      app.say(inWords(error))
    }
    await refresh()
  }
  const ask = () => (enabled && webhook.waitingForRetry > 0 ? openSwitchOff(app, webhook, change) : change())
  return html`<button
    type="button"
    role="switch"
    class="switch"
    aria-checked=${enabled ? 'true' : 'false'}
    aria-label="Deliver to ${name}"
    ?disabled=${lacking.length > 0}
    title=${lacking.length > 0 ? `You lack: ${lacking.join(', ')}` : ''}
    @click=${ask}
  >
    <span class="track"></span>${enabled ? 'On' : 'Off'}
  </button>`
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} change
 */
function openSwitchOff(app, { name, waitingForRetry }, change) {
  const confirm = () => {
    app.closeDialog()
    void change()
  }
  app.openDialog({
    label: 'Switch off',
    render: () =>
      html`<h2>Switch off ${name}?</h2>
        <p>
          ${waitingForRetry === 1 ? 'The delivery that waits for its retry is' : `The ${waitingForRetry.toLocaleString('en-GB')} deliveries that wait for their retry are`}
          stopped, and nothing new is sent.
        </p>
        <div class="buttons end">
          <button type="button" @click=${() => app.closeDialog()}>Cancel</button>
          <button type="button" class="danger" @click=${confirm}>Switch off</button>
        </div>`,
  })
}
