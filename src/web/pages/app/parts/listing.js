import { html, nothing, repeat } from '../lib/html.js'
import { staleNote, inWords } from './problem.js'
import { plural } from '../lib/times.js'
import { createTask } from './dialog.js'

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

/**
 * A column. `label`: names the cell where a narrow window shows no heads; `tooltip`: of the cell.
 * @template T
 * @typedef {{
 *   head: Template, className?: string, label?: string, cell: (row: T) => Template, tooltip?: (row: T) => string,
 * }} Column
 */

/**
 * A table. The roles stay where a narrow window lays its rows out as cards.
 * @template {{ id: string }} T
 * @param {{
 *   caption: string, columns: readonly Column<T>[], rows: readonly T[], className?: string, rowClass?: (row: T) => string,
 * }} options
 * @returns {Template}
 */
export function renderTable({ caption, columns, rows, className = 'events-table', rowClass }) {
  return html`<table class=${className} role="table">
    <caption class="unseen">
      ${caption}
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) => html`<th role="columnheader" scope="col" class=${column.className ?? nothing}>${column.head}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${repeat(
        rows,
        ({ id }) => id,
        (row) =>
          html`<tr role="row" class=${rowClass?.(row) ?? nothing}>
            ${columns.map((column) => renderCell(column, row))}
          </tr>`,
      )}
    </tbody>
  </table>`
}

/**
 * @template T
 * @param {Column<T>} column
 * @param {T} row
 */
function renderCell({ className, label, tooltip, cell }, row) {
  const title = tooltip?.(row) ?? nothing
  return html`<td role="cell" class=${className ?? nothing} data-label=${label ?? nothing} title=${title}>
    ${cell(row)}
  </td>`
}

/** A head that only screen readers need. */
export const ACTION = html`<span class="unseen">Action</span>`

const MORE = '{"nextCursor":'

/**
 * A button that downloads the list with the filter in force, a JSON text in each line.
 * @param {App} app
 * @param {'delivery' | 'event'} noun
 * @param {(query: Record<string, string>) => Promise<string>} load
 */
export function createExportButton(app, noun, load) {
  const task = createTask(app, inWords, (words) => app.showMessage(`The export failed. ${words}`))

  /** @param {Record<string, string>} query */
  const download = async (query) => {
    const text = await load(query)
    const time = new Date().toISOString().slice(0, 19).replaceAll(':', '-')
    save(text, `${plural(2, noun).slice(2)}-${time}.ndjson`)
    const lines = text.split('\n').slice(0, -1)
    const hasMore = lines.at(-1)?.startsWith(MORE) === true
    const rows = plural(hasMore ? lines.length - 1 : lines.length, noun)
    app.showMessage(
      hasMore
        ? `The newest ${rows} are exported. A filter by time leads to the others.`
        : `${rows} exported.`,
    )
  }
  /**
   * @param {Record<string, string>} query
   * @returns {Template}
   */
  return (query) =>
    html`<div class="buttons">
      <button
        type="button"
        class="quiet"
        ?disabled=${task.isBusy}
        @click=${() => task.run(() => download(query))}
      >
        ${task.isBusy ? 'Exporting …' : 'Export as NDJSON'}
      </button>
    </div>`
}

/**
 * @param {string} text
 * @param {string} name
 */
function save(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
