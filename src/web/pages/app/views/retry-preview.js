import { html } from '../lib/html.js'
import { duration } from '../lib/times.js'

/** @import { App, Delivery, Session, Template } from '../types.d.ts' */

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

/**
 * What a retry costs a delivery: which attempt it makes, and what follows if that fails.
 * @param {Pick<Session, 'retryWaitsMs'>} session
 * @param {Pick<Delivery, 'state' | 'attemptCount'>} delivery
 */
export function retryInWords(session, { state, attemptCount }) {
  const total = session.retryWaitsMs.length + 1
  if (state === 'in_progress') return 'An attempt is in progress. If it fails, the next one is made at once.'
  if (attemptCount >= total)
    return `It has had its ${String(total)} attempts: this makes one more now. If that fails, the delivery is permanently failed.`
  const number = attemptCount + 1
  return `This makes attempt ${String(number)} of ${String(total)} now. If it fails, ${whatFollows(session, number)}.`
}

/**
 * What follows the failure of attempt `number`: `the next follows 30 minutes later`.
 * @param {Pick<Session, 'retryWaitsMs'>} session
 * @param {number} number
 */
function whatFollows({ retryWaitsMs }, number) {
  const waitMs = retryWaitsMs[number - 1]
  return waitMs === undefined
    ? 'the delivery is permanently failed'
    : `the next follows ${duration(waitMs)} later`
}
