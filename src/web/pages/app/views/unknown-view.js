import { html } from '../lib/html.js'

/** @import { View } from '../types.d.ts' */

/**
 * Says that the address names no view.
 * @returns {View}
 */
export function createUnknownView() {
  return {
    title: 'No such page',
    render: () =>
      html`<section class="empty">
        <h1 tabindex="-1">No such page</h1>
        <p>The address of this page is not one of the developer area.</p>
        <p><a href="/developer">All webhooks</a></p>
      </section>`,
  }
}
