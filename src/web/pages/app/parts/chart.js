import { html, svg } from '../lib/html.js'
import { deliveriesLink } from '../lib/links.js'
import { HOUR_MS, plural } from '../lib/times.js'

/** @import { Activity, App, Template } from '../types.d.ts' */

/** @typedef {Activity['buckets'][number]} Bucket */

const HEIGHT = 64
const STEP = 12
const BAR = 9
/** The minimum height of a bar with a count, so that it is visible next to large ones. */
const LEAST = 1.5

/** @param {number} bucketMs */
function unitOf(bucketMs) {
  if (bucketMs === HOUR_MS) return 'hour'
  return bucketMs < HOUR_MS ? `${String(bucketMs / 60_000)} minutes` : `${String(bucketMs / HOUR_MS)} hours`
}

/**
 * Bars by time, failed attempts on top of successful ones, each a link to the deliveries behind it, with the same
 * figures and links as a table for keyboards and screen readers.
 * @param {App} app
 * @param {string} webhookId
 * @param {Pick<Activity, 'buckets' | 'bucketMs'>} activity
 * @returns {Template}
 */
export function renderChart(app, webhookId, { buckets, bucketMs }) {
  const { times } = app
  const max = Math.max(1, ...buckets.map(({ succeeded, failed }) => succeeded + failed))
  const width = buckets.length * STEP
  const [first, middle] = [buckets[0], buckets[Math.floor(buckets.length / 2)]]
  const isLong = bucketMs * buckets.length > 24 * HOUR_MS
  const label = (/** @type {string} */ iso) => (isLong ? times.short(iso) : times.hour(iso))
  const from = isLong ? times.dayAndHour : times.hour
  /** @param {Bucket} bucket */
  const linkOf = ({ startedAt }) =>
    deliveriesLink(webhookId, {
      attemptedSince: startedAt,
      attemptedUntil: new Date(Date.parse(startedAt) + bucketMs).toISOString(),
    })
  return html`<p class="axis top" aria-hidden="true">
      <span>${plural(max, 'attempt')}</span><span>per ${unitOf(bucketMs)}</span>
    </p>
    <svg class="chart" viewBox="0 0 ${width} ${HEIGHT + 2}" preserveAspectRatio="none" aria-hidden="true">
      ${buckets.map((bucket, index) => renderBar(bucket, index * STEP, max, from(bucket.startedAt), linkOf(bucket)))}
      <line class="base" x1="0" x2=${width} y1="0.5" y2="0.5" />
      <line class="base" x1="0" x2=${width} y1=${HEIGHT + 1} y2=${HEIGHT + 1} />
    </svg>
    <p class="axis" aria-hidden="true">
      <span>${first === undefined ? '' : label(first.startedAt)}</span
      ><span>${middle === undefined ? '' : label(middle.startedAt)}</span><span>now</span>
    </p>
    <details class="figures">
      <summary>Figures</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">Successful attempts</th>
            <th scope="col">Failed attempts</th>
          </tr>
        </thead>
        <tbody>
          ${buckets.filter(hasAny).map(
            (bucket) =>
              html`<tr>
                <th scope="row"><a href=${linkOf(bucket)}>${from(bucket.startedAt)}</a></th>
                <td>${bucket.succeeded.toLocaleString()}</td>
                <td>${bucket.failed.toLocaleString()}</td>
              </tr>`,
          )}
        </tbody>
      </table>
      ${buckets.some(hasAny) ? '' : html`<p class="hint">Nothing was sent in this time.</p>`}
    </details>`
}

const SPARK = { height: 18, step: 4, bar: 3 }

/**
 * The same in a row of a list: bars without an axis; words and a flat line where nothing was sent.
 * @param {readonly Bucket[]} hours
 * @returns {Template}
 */
export function renderSparkline(hours) {
  const { succeeded, failed } = sumOf(hours)
  const words = `${plural(succeeded, 'successful attempt')}, ${plural(failed, 'failed attempt')} in 24 hours`
  const max = Math.max(...hours.map((hour) => hour.succeeded + hour.failed))
  const { height, step, bar } = SPARK
  const [width, isEmpty] = [hours.length * step, succeeded + failed === 0]
  return html`<svg
      class="spark"
      role="img"
      aria-label=${words}
      viewBox="0 0 ${width} ${height + 1}"
      width=${width}
      height=${height + 1}
    >
      <title>${words}</title>
      ${hours.map((hour, index) => {
        const [good, bad] = [heightOf(hour.succeeded, max, height), heightOf(hour.failed, max, height)]
        const x = index * step
        return svg`<rect class="good" x=${x} y=${height - good} width=${bar} height=${good} />
          <rect class="bad" x=${x} y=${height - good - bad} width=${bar} height=${bad} />`
      })}
      <line class="base" x1="0" x2=${width} y1=${height + 0.5} y2=${height + 0.5} />
    </svg>
    ${isEmpty ? html`<span class="none">none sent</span>` : ''}`
}

/** @param {readonly Bucket[]} buckets */
export function sumOf(buckets) {
  const sum = (/** @type {'succeeded' | 'failed'} */ name) =>
    buckets.reduce((total, bucket) => total + bucket[name], 0)
  return { succeeded: sum('succeeded'), failed: sum('failed') }
}

/** @param {Bucket} hour */
function hasAny({ succeeded, failed }) {
  return succeeded + failed > 0
}

/**
 * @param {Bucket} hour
 * @param {number} x
 * @param {number} max
 * @param {string} from
 * @param {string} link
 */
function renderBar({ succeeded, failed }, x, max, from, link) {
  const [good, bad] = [heightOf(succeeded, max, HEIGHT), heightOf(failed, max, HEIGHT)]
  return svg`<a href=${link} tabindex="-1"><g>
    <title>${from}: ${plural(succeeded, 'successful attempt')}, ${plural(failed, 'failed attempt')}</title>
    <rect class="hover" x=${x} y="0" width=${STEP} height=${HEIGHT} />
    <rect class="good" x=${x + 1.5} y=${HEIGHT - good} width=${BAR} height=${good} />
    <rect class="bad" x=${x + 1.5} y=${Math.max(0, HEIGHT - good - bad)} width=${BAR} height=${bad} />
  </g></a>`
}

/**
 * @param {number} count
 * @param {number} max
 * @param {number} height
 */
function heightOf(count, max, height) {
  return count === 0 ? 0 : Math.max(LEAST, (count / max) * height)
}
