import { html, nothing } from '../lib/html.js'
import {
  createFilterPanel,
  keyField,
  rangeFields,
  searchField,
  selectField,
  statusField,
} from '../parts/filter-fields.js'
import { stateInWords } from '../parts/state-mark.js'

/** @import { App, DeliveryState, Template } from '../types.d.ts' */

/** Parameters of the address, and of the request. */
export const DELIVERY_FILTER = /** @type {const} */ ([
  'state',
  'eventKey',
  'statusCode',
  'since',
  'until',
  'search',
  'failureCode',
  'attemptedSince',
  'attemptedUntil',
])

/** @typedef {Record<typeof DELIVERY_FILTER[number], string>} DeliveryFilter */

/** @type {readonly DeliveryState[]} */
const STATES = ['waiting', 'failed', 'in_progress', 'pending', 'completed', 'stopped']

export function createDeliveryFilter() {
  const renderPanel = createFilterPanel('Filter deliveries')
  /**
   * @param {App} app
   * @param {DeliveryFilter} filter
   * @param {(changes: Partial<DeliveryFilter>) => void} change
   * @returns {Template}
   */
  return (app, filter, change) => {
    return html`${renderPanel(app, filter, change, {
      first: html`${stateField(filter.state, change)} ${keyField(app, filter.eventKey, change)}
      ${searchField('delivery, event or trace id', filter.search, change)}`,
      others: html`${statusField(filter.statusCode, change)} ${rangeFields(app, filter, change)}`,
    })}
    ${attemptsInWords(app, filter)}`
  }
}

/**
 * @param {string} value
 * @param {(changes: { state: string }) => void} change
 * @returns {Template}
 */
export function stateField(value, change) {
  const options = [['', 'All'], ...STATES.map((name) => [name, stateInWords(name)])]
  return selectField('State', value, options, (state) => change({ state }), 'field state-field')
}

/**
 * What links to the list limit it to, for which there are no fields.
 * @param {App} app
 * @param {Partial<DeliveryFilter>} filter
 * @returns {Template}
 */
function attemptsInWords({ times }, { failureCode = '', attemptedSince = '', attemptedUntil = '' }) {
  if (failureCode + attemptedSince + attemptedUntil === '') return nothing
  return html`<p class="hint">
    With an
    attempt${failureCode === '' ? nothing : html` that failed with <code>${failureCode}</code>`}${
      attemptedSince === '' ? nothing : html` from ${times.at(attemptedSince)}`
    }${attemptedUntil === '' ? nothing : html` until ${times.at(attemptedUntil)}`}.
  </p>`
}

/**
 * What a filter matches, in words.
 * @param {App} app
 * @param {Partial<DeliveryFilter>} filter
 * @returns {Template}
 */
export function filterInWords({ times }, filter) {
  const { state, eventKey, statusCode, since, until, failureCode, attemptedSince, attemptedUntil } = filter
  const found = STATES.find((name) => name === state)
  return html`<dl class="pairs matching">
    ${pair('State', found === undefined ? undefined : stateInWords(found))} ${pair('Event key', eventKey)}
    ${pair('Status code', statusCode)} ${pair('From', since === undefined ? since : times.at(since))}
    ${pair('Until', until === undefined ? until : times.at(until))} ${pair('Failure code', failureCode)}
    ${pair('Attempted from', attemptedSince === undefined ? attemptedSince : times.at(attemptedSince))}
    ${pair('Attempted until', attemptedUntil === undefined ? attemptedUntil : times.at(attemptedUntil))}
  </dl>`
}

/**
 * @param {string} label
 * @param {Template | undefined} value
 */
function pair(label, value) {
  return value === undefined
    ? ''
    : html`<dt>${label}</dt>
        <dd>${value}</dd>`
}
