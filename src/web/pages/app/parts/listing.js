import { html, nothing } from '../lib/html.js'
import { staleNote } from './problem.js'

/** @import { Answers } from '../lib/poll.js' */
/** @import { App, Template } from '../types.d.ts' */

/**
 * @template T
 * @typedef {{
 *   rows: T[] | null, answers: Answers,
 *   search: { until: string | null, isStopped: boolean } | null,
 *   page: { number: number, hasNewer: boolean, hasOlder: boolean },
 *   newer: () => void, older: () => void, stopSearch: () => void, resumeSearch: () => void,
 * }} Listing
 */

/**
 * The page of a list that is shown, how current it is, and the ways to the other pages.
 * @template T
 * @param {Pick<App, 'times'>} app
 * @param {Listing<T>} listing
 * @param {{ what: string, none: Template, show: (rows: T[]) => Template }} options `what`: named in labels, such as
 * "deliveries"
 * @returns {Template}
 */
export function renderListing(app, listing, { what, none, show }) {
  const { rows, answers, search } = listing
  return html`${staleNote(app, answers)} ${rows === null ? loading(answers) : nothing}
  ${rows === null || rows.length === 0 ? nothing : show(rows)}
  ${rows?.length === 0 && search === null ? html`<p class="faint">${none}</p>` : nothing}
  ${search === null ? nothing : renderSearch(app, search, listing)} ${renderPages(listing, what)}`
}

/** @param {Pick<Answers, 'problem'>} answers */
export function loading({ problem }) {
  return problem === '' ? html`<p class="faint">Loading …</p>` : nothing
}

/**
 * How far back a long search has looked, with a button that stops it or lets it go on.
 * @param {Pick<App, 'times'>} app
 * @param {NonNullable<Listing<unknown>['search']>} search
 * @param {Pick<Listing<unknown>, 'stopSearch' | 'resumeSearch'>} listing
 */
function renderSearch({ times }, { until, isStopped }, { stopSearch, resumeSearch }) {
  return html`<p class="searching" role="status">
    ${isStopped ? nothing : html`<span class="mark busy">Searching</span>`}
    <span>${until === null ? 'Stopped.' : html`Searched back to ${times.at(until)}`}</span>
    <button type="button" class="quiet" @click=${isStopped ? resumeSearch : stopSearch}>
      ${isStopped ? 'Search on' : 'Stop'}
    </button>
  </p>`
}

/**
 * @param {Pick<Listing<unknown>, 'page' | 'newer' | 'older'>} listing
 * @param {string} what
 */
function renderPages({ page: { number, hasNewer, hasOlder }, newer, older }, what) {
  if (!hasNewer && !hasOlder) return nothing
  return html`<nav class="buttons between" aria-label="Pages of ${what}">
    <button type="button" ?disabled=${!hasNewer} @click=${newer}>Newer</button>
    <span class="faint">Page ${number}</span>
    <button type="button" ?disabled=${!hasOlder} @click=${older}>Older</button>
  </nav>`
}

/** Leads from what belongs to all webhooks back to their list. */
export const CRUMBS = html`<nav class="crumbs" aria-label="Breadcrumbs">
  <a href="/developer">Webhooks</a>
</nav>`

/**
 * The heading of a page, with a line about it and what can be done there.
 * @param {string} title
 * @param {Template} [words]
 * @param {Template} [buttons]
 * @returns {Template}
 */
export function renderHeading(title, words = nothing, buttons = nothing) {
  return html`<div class="heading">
    <div>
      <h1 tabindex="-1">${title}</h1>
      ${words === nothing ? nothing : html`<p class="faint">${words}</p>`}
    </div>
    ${buttons === nothing ? nothing : html`<div class="buttons">${buttons}</div>`}
  </div>`
}
