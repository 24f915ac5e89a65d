import { html } from '../lib/html.js'
import { addressed, keepInAddress } from '../lib/links.js'

/** @import { App } from '../types.d.ts' */

/** Parameter of the address. */
const SEARCH = 'q'

/**
 * A field that finds rows as the user types, and keeps the search in the address.
 * @param {Pick<App, 'update'>} app
 * @param {{ label: string, placeholder: string }} words
 */
export function createFinder(app, { label, placeholder }) {
  let search = addressed(SEARCH)
  /** @param {Event} event */
  const find = (event) => {
    search = /** @type {HTMLInputElement} */ (event.currentTarget).value
    keepInAddress(SEARCH, search)
    app.update()
  }
  return {
    get search() {
      return search
    },
    /** @param {string} text */
    finds: (text) => hasWords(text, search),
    render: () =>
      html`<input
        type="search"
        class="find"
        aria-label=${label}
        placeholder=${placeholder}
        .value=${search}
        @input=${find}
      />`,
  }
}

/**
 * Returns whether every word of the search is in the text, whatever its case.
 * @param {string} text
 * @param {string} search
 */
export function hasWords(text, search) {
  const lower = text.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word))
}
