import { html, live, nothing, repeat } from '../lib/html.js'
import { may, WILDCARD } from '../lib/permissions.js'
import { hasWords } from './filter-fields.js'

/** @import { App, EventKey } from '../types.d.ts' */

/** How far these keys move in the list; Infinity to an end. @type {Record<string, number>} */
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }

/**
 * Chooses event keys, found by key or meaning; those that are chosen at the start come first. The list is one stop of the
 * Tab key: arrow keys move in it. Only those are offered that the member may subscribe to, and those that are chosen
 * already; all events at once with full access only.
 * @param {App} app
 * @param {readonly string[]} initial
 */
export function createKeyPicker(app, initial) {
  const chosen = new Set(initial)
  const { fullAccess } = app.session.member
  const offered = [
    ...initial.filter((key) => key !== WILDCARD && isMissing(app, key)).map(missing),
    ...app.eventKeys.filter(({ key }) => chosen.has(key)),
    ...app.eventKeys.filter(
      ({ key, permission, subscribable }) => !chosen.has(key) && subscribable && may(app.session, permission),
    ),
  ]
  let search = ''
  /** The key that the Tab key leads to; the first one that is found where it is not among them. */
  let current = ''

  /** @param {string} key */
  const toggle = (key) => () => {
    if (!chosen.delete(key)) chosen.add(key)
    app.update()
  }
  const toggleAll = () => {
    const wasAll = chosen.has(WILDCARD)
    chosen.clear()
    if (!wasAll) chosen.add(WILDCARD)
    app.update()
  }
  /** @param {Event} event */
  const find = (event) => {
    search = /** @type {HTMLInputElement} */ (event.currentTarget).value
    app.update()
  }
  /** @param {KeyboardEvent} event */
  const noSubmit = (event) => {
    if (event.key === 'Enter') event.preventDefault()
  }
  /** @param {KeyboardEvent} event */
  const move = (event) => {
    const step = STEPS[event.key]
    if (step === undefined) return
    event.preventDefault()
    const list = /** @type {HTMLElement} */ (event.currentTarget)
    const boxes = [...list.querySelectorAll('input')]
    const from = boxes.findIndex((box) => box === event.target)
    boxes[Math.min(Math.max(from + step, 0), boxes.length - 1)]?.focus()
  }

  /**
   * @param {EventKey} option
   * @param {boolean} isStop
   */
  const option = ({ key, meaning }, isStop) =>
    html`<li>
      <label class="option"
        ><input
          type="checkbox"
          tabindex=${isStop ? '0' : '-1'}
          .checked=${live(chosen.has(key))}
          @change=${toggle(key)}
          @focus=${() => {
            current = key
            app.update()
          }}
        />
        <span><span class="mono">${key}</span> <span class="faint">${meaning}</span></span></label
      >
    </li>`

  const list = () => {
    const found = offered.filter(({ key, meaning }) => hasWords(`${key} ${meaning}`, search))
    const stop = Math.max(
      0,
      found.findIndex(({ key }) => key === current),
    )
    return html`<input
        type="search"
        aria-label="Search event keys"
        placeholder="Search by key or meaning"
        .value=${search}
        @input=${find}
        @keydown=${noSubmit}
      />
      <p class="hint">
        <span role="status">${`${String(found.length)} of ${String(offered.length)} event keys`}</span>; arrow
        keys move, Space chooses.
      </p>
      <ul class="options" tabindex="-1" aria-label="Event keys" @keydown=${move}>
        ${repeat(
          found,
          ({ key }) => key,
          (one, index) => option(one, index === stop),
        )}
      </ul>`
  }

  return {
    chosen: () => [...chosen],
    /** @param {boolean} isInvalid */
    render: (isInvalid) =>
      html`<fieldset aria-describedby="keys-problem" aria-invalid=${isInvalid ? 'true' : 'false'}>
        <legend>
          Event keys
          <span class="hint">${chosen.has(WILDCARD) ? 'all' : `${String(chosen.size)} chosen`}</span>
        </legend>
        ${
          fullAccess || chosen.has(WILDCARD)
            ? html`<label class="check"
                ><input type="checkbox" .checked=${live(chosen.has(WILDCARD))} @change=${toggleAll} />
                <span
                  ><span class="together">All events</span>
                  <span class="hint">Those to come too. Only for members with full access.</span></span
                ></label
              >`
            : nothing
        }
        ${chosen.has(WILDCARD) ? nothing : list()}
      </fieldset>`,
  }
}

/**
 * @param {App} app
 * @param {string} key
 */
function isMissing(app, key) {
  return app.eventKeys.length > 0 && !app.eventKeys.some((option) => option.key === key)
}

/**
 * A key that the catalogue has lost: it can be taken out, and has to be before the form is saved.
 * @param {string} key
 * @returns {EventKey}
 */
function missing(key) {
  const meaning = 'No longer in the catalogue'
  return { key, meaning, permission: '', subscribable: false, schema: null, example: {} }
}
