import { html, nothing } from '../lib/html.js'
import { addressed, keepInAddress } from '../lib/links.js'
import { poll } from '../lib/poll.js'
import { milliseconds, plural, share } from '../lib/times.js'
import { renderChart, sumOf } from '../parts/chart.js'
import { renderFailures } from '../parts/failures.js'
import { staleNote } from '../parts/problem.js'

/** @import { Activity, ActivityRange, App } from '../types.d.ts' */

const EVERY_MS = 15_000

/** Parameter of the address. */
const RANGE = 'range'

/** @type {Readonly<Record<ActivityRange, string>>} */
const RANGES = { '1h': 'Last hour', '24h': 'Last 24 hours', '7d': 'Last 7 days' }

/** @returns {ActivityRange} */
function addressedRange() {
  const wanted = addressed(RANGE)
  return wanted === '1h' || wanted === '7d' ? wanted : '24h'
}

/**
 * The last hour, 24 hours or 7 days: successful and failed attempts by time, how fast they were, and the failed ones by
 * their cause.
 * @param {App} app
 * @param {string} webhookId
 */
export function createActivity(app, webhookId) {
  /** @type {Activity | null} */
  let activity = null
  let range = addressedRange()
  const polling = poll(
    app,
    async () => {
      const wanted = range
      const found = await app.api.activity(webhookId, wanted)
      if (wanted === range) activity = found
    },
    EVERY_MS,
  )
  /** @param {ActivityRange} wanted */
  const choose = (wanted) => () => {
    ;[range, activity] = [wanted, null]
    keepInAddress(RANGE, wanted === '24h' ? '' : wanted)
    app.update()
    void polling.refresh()
  }

  return {
    stop: polling.stop,
    render: () =>
      html`<section class="card activity">
          <div class="bar">
            <h2>${RANGES[range]}</h2>
            <div class="choice" role="group" aria-label="Time range">
              ${
                /** @type {ActivityRange[]} */ (Object.keys(RANGES)).map(
                  (name) =>
                    html`<button
                      type="button"
                      title=${RANGES[name]}
                      aria-pressed=${name === range ? 'true' : 'false'}
                      @click=${choose(name)}
                    >
                      ${name.replace(/(?=[hd])/, '\u00a0')}
                    </button>`,
                )
              }
            </div>
          </div>
          ${staleNote(app, polling.answers)} ${activity === null ? nothing : body(app, webhookId, activity)}
        </section>
        ${activity === null || activity.failures.causes.length === 0 ? nothing : failuresOf(activity)}`,
  }

  /** @param {Activity} shown */
  function failuresOf({ failures }) {
    return html`<section class="card" aria-label="Failures by cause">
      <h2>Failures by cause</h2>
      ${renderFailures(app, webhookId, failures)}
    </section>`
  }
}

/**
 * @param {App} app
 * @param {string} webhookId
 * @param {Activity} activity
 */
function body(app, webhookId, activity) {
  const { buckets, isCapped, p95DurationMs, firstAttempt } = activity
  const { succeeded, failed } = sumOf(buckets)
  const { count, p50Ms, p99Ms } = firstAttempt
  return html`<p class="legend">
      <span class="good-dot">${plural(succeeded, 'successful attempt')}</span>
      <span class="bad-dot">${plural(failed, 'failed attempt')}</span>
    </p>
    ${
      succeeded + failed === 0
        ? nothing
        : html`<p>
            <b>${share(succeeded, succeeded + failed)}</b> of attempts
            succeeded${p95DurationMs === null ? nothing : html`, 95 of 100 took <b>${milliseconds(p95DurationMs)}</b> at most`}
          </p>`
    }
    ${isCapped ? html`<p class="hint">There may be more: the latest 20,000 of each outcome are counted.</p>` : nothing}
    ${renderChart(app, webhookId, activity)}
    <h3>Time to first attempt</h3>
    ${
      p50Ms === null || p99Ms === null
        ? html`<p class="faint">No first attempt in this time.</p>`
        : html`<p>
            Median <b>${milliseconds(p50Ms)}</b>, 99th percentile <b>${milliseconds(p99Ms)}</b>
            <span class="faint">of ${plural(count, 'delivery')}</span>
          </p>`
    }`
}
