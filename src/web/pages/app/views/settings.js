import { html, nothing } from '../lib/html.js'
import { may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { ownSubscription, switchOff, switchOn, unsupportedReason } from '../lib/push.js'
import { createTask } from '../parts/dialog.js'
import { loading } from '../parts/listing.js'
import { inWords, problemNote, staleNote } from '../parts/problem.js'

/** @import { App, PushSubscriptions, View } from '../types.d.ts' */

/** Who has it is told of incidents. */
const TOLD = 'organizationSettings:update'

const EVERY_MS = 15_000

/**
 * Where the member is notified of incidents: push messages in this browser, and in others.
 * @param {App} app
 * @returns {View}
 */
export function createNotificationsView(app) {
  /** @type {PushSubscriptions | null} */
  let known = null
  let ownEndpoint = ''
  const task = createTask(app, (error) => (error instanceof DOMException ? refusal(error) : inWords(error)))
  const unsupported = unsupportedReason()

  const load = async () => {
    known = await app.api.pushSubscriptions()
    ownEndpoint = unsupported === '' ? ((await ownSubscription())?.endpoint ?? '') : ''
  }
  const { answers, refresh, stop } = poll(app, load, EVERY_MS)
  /** @param {() => Promise<unknown>} work */
  const attempt = (work) =>
    task.run(async () => {
      await work()
      await refresh()
    })
  const isOn = () => known?.data.some(({ endpoint }) => endpoint === ownEndpoint) === true
  const toggle = () =>
    attempt(async () => {
      if (known === null || known.vapidPublicKey === null) return
      if (isOn()) {
        await switchOff(app.api, known)
        app.showMessage('Push messages are off in this browser.')
      } else if (await switchOn(app.api, known.vapidPublicKey))
        app.showMessage('Push messages are on in this browser.')
    })
  /** @param {string} id */
  const remove = (id) => attempt(() => app.api.unsubscribeFromPush(id))

  return {
    title: 'Notifications',
    stop,
    render: () =>
      html`<div class="heading"><h1 tabindex="-1">Notifications</h1></div>
        <div class="narrow">
          <section class="card">
            <h2>Push messages in this browser</h2>
            <p>
              When a webhook keeps failing, and when its first delivery is permanently failed. At most two for
              each incident. They end when you sign out here, and when the API key that you signed in with is
              revoked; not when your session expires.
            </p>
            ${problemNote(task.problem)} ${staleNote(app, answers)}
            ${known === null ? loading(answers) : own(known)}
            ${
              may(app.session, TOLD)
                ? nothing
                : html`<p class="hint">
                    Messages go to members with <span class="mono">${TOLD}</span>, which you lack: you will
                    get none until you have it.
                  </p>`
            }
          </section>
          ${known === null ? nothing : others(known)}
        </div>`,
  }

  /** @param {PushSubscriptions} shown */
  function own(shown) {
    const reason = obstacle(shown)
    if (reason !== '') return html`<p class="note" role="status">${reason}</p>`
    return html`<p>
      <button
        type="button"
        role="switch"
        class="switch"
        aria-checked=${isOn() ? 'true' : 'false'}
        aria-label="Push messages"
        ?disabled=${task.isBusy}
        @click=${toggle}
      >
        <span class="track"></span>${isOn() ? 'On' : 'Off'}
      </button>
    </p>`
  }

  /** @param {PushSubscriptions} shown */
  function obstacle({ pushEnabled, vapidPublicKey }) {
    if (vapidPublicKey === null)
      return 'Push messages are not set up here: the operator of this service has to set VAPID_PRIVATE_KEY.'
    if (!pushEnabled)
      return 'Push messages are disabled for your account. The operator of this service can enable them.'
    if (unsupported !== '') return unsupported
    if (Notification.permission === 'denied')
      return 'This browser refuses messages of this page. Allow notifications in its settings for this site, then reload the page.'
    return ''
  }

  /** @param {PushSubscriptions} shown */
  function others({ data }) {
    const rest = data.filter(({ endpoint }) => endpoint !== ownEndpoint)
    if (rest.length === 0) return nothing
    return html`<section class="card">
      <h2>Your other browsers</h2>
      <ul class="plain separated">
        ${rest.map(
          ({ id, endpoint, createdAt }) =>
            html`<li class="bar">
              <span
                >${new URL(endpoint).host} <span class="faint">since ${app.times.at(createdAt)}</span></span
              >
              <button
                type="button"
                class="quiet"
                aria-label="Remove ${new URL(endpoint).host}"
                ?disabled=${task.isBusy}
                @click=${() => remove(id)}
              >
                Remove
              </button>
            </li>`,
        )}
      </ul>
    </section>`
  }
}

/** @param {DOMException} error */
function refusal({ name, message }) {
  if (name === 'NotAllowedError') return 'This browser refuses messages of this page.'
  return `The browser could not subscribe at its push service: ${message}`
}
