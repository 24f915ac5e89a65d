import { html, nothing } from '../lib/html.js'

/** @import { App, Template } from '../types.d.ts' */

/**
 * @typedef {{
 *   search: { until: string | null, isStopped: boolean } | null,
 *   page: { number: number, hasNewer: boolean, hasOlder: boolean },
 *   newer: () => void, older: () => void, stopSearch: () => void, resumeSearch: () => void,
 * }} Pages
 */

/**
 * How far back a long search has looked, with a button that stops it or lets it go on.
 * @param {Pick<App, 'times'>} app
 * @param {Pages} listing
 * @returns {Template}
 */
export function renderSearch({ times }, { search, stopSearch, resumeSearch }) {
  if (search === null) return nothing
  const { until, isStopped } = search
  return html`<p class="searching" role="status">
    ${isStopped ? nothing : html`<span class="mark busy">Searching</span>`}
    <span>${until === null ? 'Stopped.' : html`Searched back to ${times.at(until)}`}</span>
    ${
      isStopped
        ? html`<button type="button" class="quiet" @click=${resumeSearch}>Search on</button>`
        : html`<button type="button" class="quiet" @click=${stopSearch}>Stop</button>`
    }
  </p>`
}

/**
 * @param {Pages} listing
 * @param {string} what named in the label, such as "deliveries"
 * @returns {Template}
 */
export function renderPages({ page: { number, hasNewer, hasOlder }, newer, older }, what) {
  if (!hasNewer && !hasOlder) return nothing
  return html`<nav class="buttons between" aria-label="Pages of ${what}">
    <button type="button" ?disabled=${!hasNewer} @click=${newer}>Newer</button>
    <span class="faint">Page ${number}</span>
    <button type="button" ?disabled=${!hasOlder} @click=${older}>Older</button>
  </nav>`
}
