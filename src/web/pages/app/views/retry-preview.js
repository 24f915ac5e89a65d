import { html } from '../lib/html.js'
import { whatFollows } from '../lib/schedule.js'

/** @import { App, Delivery, Template } from '../types.d.ts' */

const PAGE_SIZE = 100
/** More are not read to say what a retry makes of them. */
const MAX_REQUESTS = 10

/**
 * Which attempts a retry makes of the deliveries that wait at these webhooks, and what follows if they fail.
 * @param {App} app
 * @param {readonly string[]} webhookIds
 * @returns {Promise<Template>}
 */
export async function previewRetry(app, webhookIds) {
  /** By the number of the attempt. @type {Map<number, number>} */
  const counts = new Map()
  let requests = 0
  let isWhole = true
  for (const id of webhookIds) {
    /** @type {string | null} */
    let cursor = null
    do {
      if (requests++ >= MAX_REQUESTS) {
        isWhole = false
        break
      }
      /** @type {{ data: Delivery[], nextCursor: string | null }} */
      const page = await app.api.deliveries(id, {
        state: 'waiting',
        limit: String(PAGE_SIZE),
        ...(cursor === null ? {} : { cursor }),
      })
      for (const { attemptCount } of page.data)
        counts.set(attemptCount + 1, (counts.get(attemptCount + 1) ?? 0) + 1)
      cursor = page.nextCursor
    } while (cursor !== null)
  }
  const total = app.session.retryWaitsMs.length + 1
  return html`<ul class="prices">
      ${[...counts]
        .sort(([one], [other]) => one - other)
        .map(
          ([number, count]) =>
            html`<li>
              <b>${count.toLocaleString()}</b> ${count === 1 ? 'makes' : 'make'} attempt ${number} of
              ${total}; if it fails, ${whatFollows(app.session, number)}
            </li>`,
        )}
    </ul>
    ${isWhole ? '' : html`<p class="hint">Only some of those that wait were counted.</p>`}`
}
