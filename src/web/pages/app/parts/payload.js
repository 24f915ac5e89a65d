import { html } from '../lib/html.js'
import { prettyJson } from '../lib/json-text.js'
import { copyButton } from './copy-button.js'

/** @import { App } from '../types.d.ts' */

/**
 * A payload, pretty or to the letter, with a button that copies it to the letter.
 * @param {App} app
 */
export function createPayload(app) {
  let isRaw = false
  /** @type {{ text: string, pretty: string }} */
  let shown = { text: '', pretty: '' }
  /** @param {boolean} raw */
  const choose = (raw) => () => {
    isRaw = raw
    app.update()
  }
  return {
    /** @param {string} text the envelope as it is sent */
    render(text) {
      if (shown.text !== text) shown = { text, pretty: prettyJson(text) }
      return html`<div class="payload">
        <div class="bar">
          <h3>Payload</h3>
          <div class="choice" role="group" aria-label="Form of the payload">
            <button type="button" aria-pressed=${isRaw ? 'false' : 'true'} @click=${choose(false)}>
              Pretty
            </button>
            <button type="button" aria-pressed=${isRaw ? 'true' : 'false'} @click=${choose(true)}>Raw</button>
          </div>
          ${copyButton(app, 'payload', text)}
        </div>
        <pre tabindex="0" role="region" aria-label="Payload" class=${isRaw ? 'wrap' : ''}>
${isRaw ? text : shown.pretty}</pre>
      </div>`
    },
  }
}
