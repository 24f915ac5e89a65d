import { html, nothing } from '../lib/html.js'

/** How long a message is shown. */
const SHOWN_MS = 6_000

/**
 * Shows short messages about what was done, also to screen readers.
 * @param {() => void} update
 */
export function createToast(update) {
  let text = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  return {
    /** @param {string} message */
    show: (message) => {
      clearTimeout(timer)
      text = message
      timer = setTimeout(() => {
        text = ''
        update()
      }, SHOWN_MS)
      update()
    },
    render: () =>
      html`<div class="toast" role="status">${text === '' ? nothing : html`<p>${text}</p>`}</div>`,
  }
}
