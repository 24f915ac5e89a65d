import { BRAND } from '../lib/brand.js'
import { html } from '../lib/html.js'

/** @import { View } from '../types.d.ts' */

/**
 * Says why a portal link does not open the area.
 * @param {{ title: string, reason: string }} options
 * @returns {View}
 */
export function createClosedLink({ title, reason }) {
  return {
    title,
    render: () =>
      html`<main class="sign-in">
        <img src=${BRAND.logo} alt="" width="48" height="48" />
        <h1 tabindex="-1">${title}</h1>
        <p role="alert">${reason}</p>
        <p class="faint">
          Go back to the page that you came from, and open the developer area from there again.
        </p>
        <p><a href="/developer">Continue without a link</a></p>
      </main>`,
  }
}
