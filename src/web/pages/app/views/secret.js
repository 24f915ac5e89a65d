import { html } from '../lib/html.js'
import { lackingToManage } from '../lib/permissions.js'
import { copyButton } from '../parts/copy-button.js'
import { inWords, problemNote } from '../parts/problem.js'

/** @import { App, Overview } from '../types.d.ts' */

const HIDDEN = '•'.repeat(32)

/** A secret that is left on the screen is seen by whoever walks by. */
const SHOWN_MS = 60_000

/**
 * The signing secret: hidden, until somebody who may see it asks for it. Each look is in the audit trail.
 * @param {App} app
 * @param {string} id
 */
export function createSecret(app, id) {
  /** @type {string | null} */
  let secret = null
  let problem = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const hide = () => {
    clearTimeout(timer)
    secret = null
    app.update()
  }
  const reveal = async () => {
    try {
      secret = (await app.api.signingSecret(id)).signingSecret
      problem = ''
      timer = setTimeout(hide, SHOWN_MS)
    } catch (error) {
      problem = inWords(error)
    }
    app.update()
  }
  return {
    /** @param {Overview} webhook */
    render({ subscribedEventKeys }) {
      const lacking = lackingToManage(app.session, subscribedEventKeys)
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
        ${problemNote(problem)}
      </section>`
    },
  }
}
