import { html } from '../lib/html.js'
import { lackingToManage } from '../lib/permissions.js'
import { createTask } from '../parts/dialog.js'
import { copyButton } from '../parts/payload.js'
import { problemNote } from '../parts/problem.js'
import { createVerification } from './verification.js'

/** @import { App, Overview } from '../types.d.ts' */

const HIDDEN = '•'.repeat(32)

/** A visible secret is hidden again after this time. */
const SHOWN_MS = 60_000

/**
 * The signing secret, hidden until an authorised member requests it, and how a signature is verified with it. Each display
 * is in the audit trail.
 * @param {App} app
 * @param {string} id
 */
export function createSecret(app, id) {
  /** @type {string | null} */
  let secret = null
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const verification = createVerification(app)
  const task = createTask(app)
  const hide = () => {
    clearTimeout(timer)
    secret = null
    app.update()
    void verification.signWith(null)
  }
  const reveal = () =>
    task.run(async () => {
      const { signingSecret } = await app.api.signingSecret(id)
      secret = signingSecret
      timer = setTimeout(hide, SHOWN_MS)
      app.update()
      await verification.signWith(secret)
    })
  return {
    stop: hide,
    /** @param {Overview} webhook */
    render({ subscribedEventKeys }) {
      const lacking = lackingToManage(app, subscribedEventKeys)
      return html`<section class="card secret">
          <h2>Signing secret</h2>
          <p><code>${secret ?? HIDDEN}</code></p>
          ${
            lacking.length > 0
              ? html`<p class="hint">
                  Only members who may change this webhook can see it. You lack: ${lacking.join(', ')}.
                </p>`
              : html`<div class="buttons">
                  ${
                    secret === null
                      ? html`<button type="button" class="quiet" @click=${reveal}>Reveal</button>`
                      : html`<button type="button" class="quiet" @click=${hide}>Hide</button>
                          ${copyButton(app, 'signing secret', secret)}`
                  }
                </div>`
          }
          ${problemNote(task.problem)}
        </section>
        ${verification.render()}`
    },
  }
}
