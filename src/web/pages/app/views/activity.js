import { html, nothing } from '../lib/html.js'
import { poll } from '../lib/poll.js'
import { milliseconds, plural } from '../lib/times.js'
import { renderChart } from '../parts/chart.js'
import { inWords, problemNote } from '../parts/problem.js'

/** @import { Activity, App } from '../types.d.ts' */

const EVERY_MS = 15_000

/**
 * The last 24 hours: deliveries and failures by the hour, and how fast first attempts were.
 * @param {App} app
 * @param {string} webhookId
 */
export function createActivity(app, webhookId) {
  /** @type {Activity | null} */
  let activity = null
  let problem = ''
  const asking = poll(async () => {
    try {
      activity = await app.api.activity(webhookId)
      problem = ''
    } catch (error) {
      problem = inWords(error)
      throw error
    } finally {
      app.update()
    }
  }, EVERY_MS)

  return {
    stop: asking.stop,
    render: () =>
      html`<section class="card activity">
        <h2>Last 24 hours</h2>
        ${problemNote(problem)} ${activity === null ? nothing : body(app, activity)}
      </section>`,
  }
}

/**
 * @param {App} app
 * @param {Activity} activity
 */
function body({ times }, { hours, firstAttempt }) {
  const sum = (/** @type {'succeeded' | 'failed'} */ name) =>
    hours.reduce((total, hour) => total + hour[name], 0)
  const [succeeded, failed] = [sum('succeeded'), sum('failed')]
  const { count, p50Ms, p99Ms } = firstAttempt
  return html`<p class="legend">
      <span class="good-dot">${plural(succeeded, 'delivery')}</span>
      <span class="bad-dot">${plural(failed, 'failed attempt')}</span>
    </p>
    ${renderChart(hours, times)}
    <dl class="facts small">
      <div>
        <dt>First attempt, half within</dt>
        <dd>${p50Ms === null ? '–' : milliseconds(p50Ms)}</dd>
      </div>
      <div>
        <dt>99 of 100 within</dt>
        <dd>${p99Ms === null ? '–' : milliseconds(p99Ms)}</dd>
      </div>
    </dl>
    <p class="hint">
      p50 and p99, from the event's acceptance to the end of its first
      attempt${count === 0 ? '' : `, ${count.toLocaleString('en-GB')} of them`}.
    </p>`
}
