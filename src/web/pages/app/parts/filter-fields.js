import { html, live, nothing } from '../lib/html.js'
import { HOUR_MS, toInstant, toLocalTime } from '../lib/times.js'
import { addressed, keepInAddress } from '../lib/links.js'

/** @import { App, Template } from '../types.d.ts' */

/** @typedef {(changes: Record<string, string>) => void} Change */

/**
 * Applies what was entered once the field is left or Enter is pressed, and only if it is valid.
 * @param {(value: string) => void} apply
 * @returns {(event: Event) => void}
 */
const entered = (apply) => (event) => {
  const field = /** @type {HTMLInputElement} */ (event.currentTarget)
  field.value = field.value.trim()
  if (field.reportValidity()) apply(field.value)
}

/**
 * @param {App} app
 * @param {string} value
 * @param {Change} change
 * @returns {Template}
 */
export function keyField({ eventKeys }, value, change) {
  return html`<label class="field key-field"
      >Event key
      <input
        list="event-keys"
        autocomplete="off"
        spellcheck="false"
        maxlength="100"
        pattern="[!-~]+"
        title="An event key, such as invoice:paid"
        .value=${value}
        @change=${entered((eventKey) => change({ eventKey }))}
    /></label>
    <datalist id="event-keys">
      ${eventKeys.map(({ key, meaning }) => html`<option value=${key} label=${meaning}></option>`)}
    </datalist>`
}

/**
 * @param {string} label
 * @param {string} value
 * @param {Change} change
 * @returns {Template}
 */
export function searchField(label, value, change) {
  return html`<label class="field search-field"
    >Search
    <input
      type="search"
      autocomplete="off"
      spellcheck="false"
      maxlength="128"
      pattern="[!-~]+"
      placeholder=${label}
      title="A whole ${label}"
      .value=${value}
      @change=${entered((search) => change({ search }))}
  /></label>`
}

/**
 * @param {string} value
 * @param {Change} change
 * @returns {Template}
 */
export function statusField(value, change) {
  return html`<label class="field code-field"
    >Status code
    <input
      inputmode="numeric"
      autocomplete="off"
      maxlength="3"
      pattern="[1-5][0-9]{2}"
      title="A status code from 100 to 599"
      .value=${value}
      @change=${entered((statusCode) => change({ statusCode }))}
  /></label>`
}

/**
 * A list to choose from.
 * @param {string} label
 * @param {string} value
 * @param {readonly (readonly string[])[]} options each a value and its words; the value itself without any
 * @param {(value: string) => void} choose
 * @param {string} [className]
 * @returns {Template}
 */
export function selectField(label, value, options, choose, className = 'field') {
  /** @param {Event} event */
  const change = (event) => choose(/** @type {HTMLSelectElement} */ (event.currentTarget).value)
  return html`<label class=${className}
    >${label}
    <select @change=${change}>
      ${options.map(([name = '', words = name]) => html`<option value=${name} .selected=${live(name === value)}>${words}</option>`)}
    </select></label
  >`
}

/**
 * A range of time in the organisation's zone.
 * @param {App} app
 * @param {{ since: string, until: string }} range instants
 * @param {Change} change
 * @returns {Template}
 */
export function rangeFields({ times: { timeZone } }, range, change) {
  /**
   * @param {'since' | 'until'} name
   * @param {string} words
   */
  const time = (name, words) =>
    html`<label class="field time-field"
      >${words}
      <input
        type="datetime-local"
        .value=${toLocalTime(range[name], timeZone)}
        @change=${entered((local) => change({ [name]: toInstant(local, timeZone) }))}
    /></label>`
  const last = (/** @type {number} */ hours) => () =>
    change({ since: new Date(Date.now() - hours * HOUR_MS).toISOString(), until: '' })
  return html`${time('since', 'From')} ${time('until', 'Until')}
    <div class="quick" role="group" aria-label="Time range">
      <button type="button" class="quiet" @click=${last(1)}>Last hour</button>
      <button type="button" class="quiet" @click=${last(24)}>Last 24 hours</button>
    </div>`
}

/** Fields that have room only in a panel that is opened. @type {readonly string[]} */
const IN_PANEL = ['statusCode', 'since', 'until']

/**
 * Shows the first fields of a filter, and all of them once its button is pressed. It begins open where the address sets
 * one that would not be seen; in a narrow window a closed filter shows its first field only.
 * @param {string} label
 */
export function createFilterPanel(label) {
  /** @type {boolean | null} */
  let isOpen = null
  /**
   * @param {App} app
   * @param {Record<string, string>} filter
   * @param {Change} change
   * @param {{ first: Template, others: Template }} fields
   * @returns {Template}
   */
  return (app, filter, change, { first, others }) => {
    const set = Object.keys(filter).filter((name) => filter[name] !== '')
    const open = (isOpen ??= set.some((name) => IN_PANEL.includes(name)))
    const toggle = () => {
      isOpen = !open
      app.update()
    }
    return html`<div class="filter ${open ? '' : 'closed'}" role="search" aria-label=${label}>
      ${first}
      <button type="button" class="quiet" aria-expanded=${open ? 'true' : 'false'} @click=${toggle}>
        Filters${set.length === 0 ? nothing : `, ${String(set.length)} set`}
      </button>
      ${clearButton(filter, change)} ${others}
    </div>`
  }
}

/**
 * @param {Record<string, string>} filter
 * @param {Change} change
 * @returns {Template}
 */
function clearButton(filter, change) {
  const cleared = Object.fromEntries(Object.keys(filter).map((name) => [name, '']))
  return Object.values(filter).every((value) => value === '')
    ? nothing
    : html`<button type="button" class="quiet clear" @click=${() => change(cleared)}>Clear filters</button>`
}

/** Parameter of the address. */
const SEARCH = 'q'

/**
 * A field that finds rows as the user types, and keeps the search in the address.
 * @param {Pick<App, 'update'>} app
 * @param {{ label: string, placeholder: string }} words
 */
export function createFinder(app, { label, placeholder }) {
  let search = addressed(SEARCH)
  /** @param {Event} event */
  const find = (event) => {
    search = /** @type {HTMLInputElement} */ (event.currentTarget).value
    keepInAddress(SEARCH, search)
    app.update()
  }
  return {
    get search() {
      return search
    },
    /** @param {string} text */
    finds: (text) => hasWords(text, search),
    render: () =>
      html`<input
        type="search"
        class="find"
        aria-label=${label}
        placeholder=${placeholder}
        .value=${search}
        @input=${find}
      />`,
  }
}

/**
 * Returns whether every word of the search is in the text, whatever its case.
 * @param {string} text
 * @param {string} search
 */
export function hasWords(text, search) {
  const lower = text.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word))
}
