import { html, nothing } from '../lib/html.js'
import { poll } from '../lib/poll.js'
import { milliseconds, plural } from '../lib/times.js'
import { renderChart } from '../parts/chart.js'
import { inWords } from '../parts/problem.js'
import { staleNote } from '../parts/stale.js'

/** @import { Activity, App } from '../types.d.ts' */

const EVERY_MS = 15_000

/**
 * The last 24 hours: successful and failed attempts by the hour, and how fast first attempts were.
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
        ${staleNote(app, asking, problem)} ${activity === null ? nothing : body(app, activity)}
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
      <span class="good-dot">${plural(succeeded, 'successful attempt')}</span>
      <span class="bad-dot">${plural(failed, 'failed attempt')}</span>
    </p>
    ${renderChart(hours, times)}
    <h3>Time to first attempt</h3>
    ${
      p50Ms === null || p99Ms === null
        ? html`<p class="faint">No first attempt in these 24 hours.</p>`
        : html`<p>
            Median <b>${milliseconds(p50Ms)}</b>, 99th percentile <b>${milliseconds(p99Ms)}</b>
            <span class="faint">of ${plural(count, 'delivery')}</span>
          </p>`
    }`
}
