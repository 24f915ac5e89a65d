import { html } from '../lib/html.js'

/** @import { App, Template } from '../types.d.ts' */

/**
 * @param {Pick<App, 'showMessage'>} app
 * @param {string} what named in the button's label, such as "payload"
 * @param {string} text
 * @returns {Template}
 */
export function copyButton(app, what, text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      app.showMessage(`Copied the ${what}.`)
    } catch {
      app.showMessage(`The browser does not let this page copy. Select the ${what} and copy it yourself.`)
    }
  }
  return html`<button type="button" class="quiet" aria-label="Copy ${what}" @click=${copy}>Copy</button>`
}
