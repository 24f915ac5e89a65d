import { html, svg } from '../lib/html.js'
import { plural } from '../lib/times.js'

/** @import { Activity, Template, Times } from '../types.d.ts' */

/** @typedef {Activity['hours'][number]} Hour */

const HEIGHT = 64
const STEP = 12
const BAR = 9
/** The minimum height of a bar with a count, so that it is visible next to large ones. */
const LEAST = 1.5

/**
 * Bars by the hour, failed attempts on top of successful ones, with the same figures as a table for screen readers.
 * @param {readonly Hour[]} hours
 * @param {Times} times
 * @returns {Template}
 */
export function renderChart(hours, times) {
  const max = Math.max(1, ...hours.map(({ succeeded, failed }) => succeeded + failed))
  const width = hours.length * STEP
  const first = hours[0]?.startedAt
  return html`<svg
      class="chart"
      viewBox="0 0 ${width} ${HEIGHT + 2}"
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      ${hours.map((hour, index) => renderBar(hour, index * STEP, max, times))}
      <line class="base" x1="0" x2=${width} y1=${HEIGHT + 1} y2=${HEIGHT + 1} />
    </svg>
    <p class="axis" aria-hidden="true">
      <span>${first === undefined ? '' : times.hour(first)}</span><span>now</span>
    </p>
    <details class="figures">
      <summary>Figures</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Hour</th>
            <th scope="col">Successful attempts</th>
            <th scope="col">Failed attempts</th>
          </tr>
        </thead>
        <tbody>
          ${hours.filter(hasAny).map(
            ({ startedAt, succeeded, failed }) =>
              html`<tr>
                <th scope="row">${times.hour(startedAt)}</th>
                <td>${succeeded.toLocaleString()}</td>
                <td>${failed.toLocaleString()}</td>
              </tr>`,
          )}
        </tbody>
      </table>
      ${hours.some(hasAny) ? '' : html`<p class="hint">Nothing was sent in these 24 hours.</p>`}
    </details>`
}

const SPARK = { height: 18, step: 4, bar: 3 }

/**
 * The same in a row of a list: bars without an axis; words and a flat line where nothing was sent.
 * @param {readonly Hour[]} hours
 * @returns {Template}
 */
export function renderSparkline(hours) {
  const sum = (/** @type {'succeeded' | 'failed'} */ name) =>
    hours.reduce((total, hour) => total + hour[name], 0)
  const [succeeded, failed] = [sum('succeeded'), sum('failed')]
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

/** @param {Hour} hour */
function hasAny({ succeeded, failed }) {
  return succeeded + failed > 0
}

/**
 * @param {Hour} hour
 * @param {number} x
 * @param {number} max
 * @param {Times} times
 */
function renderBar({ startedAt, succeeded, failed }, x, max, times) {
  const [good, bad] = [heightOf(succeeded, max, HEIGHT), heightOf(failed, max, HEIGHT)]
  return svg`<g>
    <title>${times.hour(startedAt)}: ${plural(succeeded, 'successful attempt')}, ${plural(failed, 'failed attempt')}</title>
    <rect class="hover" x=${x} y="0" width=${STEP} height=${HEIGHT} />
    <rect class="good" x=${x + 1.5} y=${HEIGHT - good} width=${BAR} height=${good} />
    <rect class="bad" x=${x + 1.5} y=${Math.max(0, HEIGHT - good - bad)} width=${BAR} height=${bad} />
  </g>`
}

/**
 * @param {number} count
 * @param {number} max
 * @param {number} height
 */
function heightOf(count, max, height) {
  return count === 0 ? 0 : Math.max(LEAST, (count / max) * height)
}
