import { html, nothing } from '../lib/html.js'

/** How long a sentence stays. */
const SHOWN_MS = 6_000

/**
 * Short sentences on what was done, for eyes and for screen readers.
 * @param {() => void} update
 */
export function createSayings(update) {
  let text = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  return {
    /** @param {string} sentence */
    say: (sentence) => {
      clearTimeout(timer)
      text = sentence
      timer = setTimeout(() => {
        text = ''
        update()
      }, SHOWN_MS)
      update()
    },
    render: () =>
      html`<div class="sayings" role="status">${text === '' ? nothing : html`<p>${text}</p>`}</div>`,
  }
}
