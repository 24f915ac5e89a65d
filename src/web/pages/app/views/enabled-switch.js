import { element, html, nothing } from '../lib/html.js'
import { lackingToManage, MANAGE, may } from '../lib/permissions.js'
import { plural } from '../lib/times.js'
import { nameOf } from '../parts/address.js'
import { openConfirm } from '../parts/dialog.js'
import { inWords } from '../parts/problem.js'
import { openAction, webhookAction } from './actions.js'

/** @import { App, Overview, Template } from '../types.d.ts' */

/**
 * Switches the webhook on or off. Switching off stops waiting deliveries, so it needs a confirmation; switching on offers
 * to resume them.
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 * @returns {Template}
 */
export function enabledSwitch(app, webhook, refresh) {
  const { id, enabled, subscribedEventKeys, operatorHold } = webhook
  // Switching off only reduces what the webhook does, so it needs no permission of its event keys.
  const maySwitchOff = enabled && may(app.session, MANAGE)
  const lacking = maySwitchOff ? [] : lackingToManage(app, subscribedEventKeys)
  const change = async () => {
    const view = app.viewSignal()
    try {
      await app.api.change(id, { enabled: !enabled })
      app.showMessage(enabled ? 'Switched off.' : 'Switched on.')
      if (!enabled && webhook.stopped > 0 && !view.aborted) await offerToResume(app, webhook, refresh)
    } catch (error) {
      app.showMessage(inWords(error))
    }
    await refresh()
  }
  return html`<button
    type="button"
    role="switch"
    class="switch"
    aria-checked=${enabled ? 'true' : 'false'}
    aria-label="Deliver to ${nameOf(webhook)}"
    ?disabled=${operatorHold !== null || lacking.length > 0}
    title=${whyNot(operatorHold, lacking)}
    @click=${() => (enabled ? openSwitchOff(app, webhook, change) : change())}
  >
    <span class="track"></span>${enabled ? 'On' : 'Off'}
  </button>`
}

/**
 * @param {Overview['operatorHold']} hold
 * @param {readonly string[]} lacking
 */
function whyNot(hold, lacking) {
  if (hold !== null) return `Held by the operator: ${hold.reason}`
  return lacking.length > 0 ? `You lack: ${lacking.join(', ')}` : ''
}

/**
 * Counts what is still stopped: what was stopped before any attempt has gone on by itself. Another dialog that was opened
 * meanwhile is left alone.
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 */
async function offerToResume(app, webhook, refresh) {
  const action = webhookAction(app, webhook, 'stopped')
  if ((await action.count()) > 0 && element('dialog[open]') === null) openAction(app, action, refresh)
}

/**
 * Says what a switch-off does to the deliveries that are not over, before it is done.
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} change
 */
function openSwitchOff(app, webhook, change) {
  const { waitingForRetry, permanentlyFailed } = webhook
  openConfirm(app, {
    title: `Switch off ${nameOf(webhook)}?`,
    text: html`<p>Nothing new is sent to it: events that happen meanwhile are not kept for it.</p>
      <p>${whatWaits(waitingForRetry)}</p>
      ${permanentlyFailed === 0 ? nothing : html`<p>${whatFailed(permanentlyFailed)}</p>`}`,
    button: 'Switch off',
    run: (close) => {
      close()
      return change()
    },
  })
}

/** @param {number} count */
function whatWaits(count) {
  if (count === 0) return 'No delivery waits for a retry.'
  const [are, they] = count === 1 ? ['is', 'it'] : ['are', 'them']
  const wait = count === 1 ? 'waits' : 'wait'
  return `${plural(count, 'delivery')} that ${wait} for a retry ${are} stopped. You can resume ${they} when it is on again.`
}

/** @param {number} count */
function whatFailed(count) {
  return `${plural(count, 'permanently failed delivery')} ${count === 1 ? 'stays' : 'stay'} as ${count === 1 ? 'it is' : 'they are'}.`
}
