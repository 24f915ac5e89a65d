import { html, svg } from '../lib/html.js'
import { plural } from '../lib/times.js'

/** @import { Activity, Template, Times } from '../types.d.ts' */

/** @typedef {Activity['hours'][number]} Hour */

const HEIGHT = 64
const STEP = 12
const BAR = 9
/** A bar that stands for something is seen, however small it is beside the others. */
const LEAST = 1.5

/**
 * Bars by the hour, failures on top of deliveries, with the same as a table for whoever does not see them.
 * @param {readonly Hour[]} hours
 * @param {Times} times
 * @returns {Template}
 */
export function renderChart(hours, times) {
  const most = Math.max(1, ...hours.map(({ succeeded, failed }) => succeeded + failed))
  const width = hours.length * STEP
  const first = hours[0]?.startedAt
  return html`<svg
      class="chart"
      viewBox="0 0 ${width} ${HEIGHT + 2}"
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      ${hours.map((hour, index) => renderBar(hour, index * STEP, most, times))}
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
            <th scope="col">Deliveries</th>
            <th scope="col">Failed attempts</th>
          </tr>
        </thead>
        <tbody>
          ${hours.filter(hasAny).map(
            ({ startedAt, succeeded, failed }) =>
              html`<tr>
                <th scope="row">${times.hour(startedAt)}</th>
                <td>${succeeded.toLocaleString('en-GB')}</td>
                <td>${failed.toLocaleString('en-GB')}</td>
              </tr>`,
          )}
        </tbody>
      </table>
      ${hours.some(hasAny) ? '' : html`<p class="hint">Nothing was sent in these 24 hours.</p>`}
    </details>`
}

/** @param {Hour} hour */
function hasAny({ succeeded, failed }) {
  return succeeded + failed > 0
}

/**
 * @param {Hour} hour
 * @param {number} x
 * @param {number} most
 * @param {Times} times
 */
function renderBar({ startedAt, succeeded, failed }, x, most, times) {
  const [good, bad] = [heightOf(succeeded, most), heightOf(failed, most)]
  return svg`<g>
    <title>${times.hour(startedAt)}: ${plural(succeeded, 'delivery')}, ${plural(failed, 'failed attempt')}</title>
    <rect class="hover" x=${x} y="0" width=${STEP} height=${HEIGHT} />
    <rect class="good" x=${x + 1.5} y=${HEIGHT - good} width=${BAR} height=${good} />
    <rect class="bad" x=${x + 1.5} y=${Math.max(0, HEIGHT - good - bad)} width=${BAR} height=${bad} />
  </g>`
}

/**
 * @param {number} count
 * @param {number} most
 */
function heightOf(count, most) {
  return count === 0 ? 0 : Math.max(LEAST, (count / most) * HEIGHT)
}
