import { html, live, nothing, repeat } from '../lib/html.js'
import { may, WILDCARD } from '../lib/permissions.js'
import { inWords, problemNote } from './problem.js'

/** @import { App, EventKey } from '../types.d.ts' */

/**
 * Chooses event keys, found by key or meaning. Only those are offered that the member may subscribe to, and those that
 * are chosen already; all events at once with full access only.
 * @param {App} app
 * @param {readonly string[]} initial
 */
export function createKeyPicker(app, initial) {
  const chosen = new Set(initial)
  const { fullAccess } = app.session.member
  /** @type {EventKey[] | null} */
  let offered = null
  let search = ''
  let problem = ''
  app.api.eventKeys().then(
    ({ data }) => {
      offered = data.filter(
        ({ key, permission, subscribable }) =>
          chosen.has(key) || (subscribable && may(app.session, permission)),
      )
      app.update()
    },
    /** @param {unknown} error */
    (error) => {
      problem = inWords(error)
      app.update()
    },
  )

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

  /** @param {EventKey} option */
  const option = ({ key, meaning }) =>
    html`<li>
      <label class="option"
        ><input type="checkbox" .checked=${live(chosen.has(key))} @change=${toggle(key)} />
        <span><span class="mono">${key}</span> <span class="faint">${meaning}</span></span></label
      >
    </li>`

  const list = () => {
    const found = matching(offered ?? [], search)
    return html`<input
        type="search"
        aria-label="Search event keys"
        placeholder="Search by key or meaning"
        .value=${search}
        @input=${find}
        @keydown=${noSubmit}
      />
      <p class="hint" role="status">
        ${offered === null ? 'Loading …' : `${String(found.length)} of ${String(offered.length)} event keys`}
      </p>
      <ul class="options" tabindex="-1">
        ${repeat(found, ({ key }) => key, option)}
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
                ><input type="checkbox" .checked=${live(chosen.has(WILDCARD))} @change=${toggleAll} /> All
                events <span class="hint">Those to come too. Only for members with full access.</span></label
              >`
            : nothing
        }
        ${chosen.has(WILDCARD) ? nothing : list()} ${problemNote(problem)}
      </fieldset>`,
  }
}

/**
 * Every word of the search has to be in the key or its meaning.
 * @param {readonly EventKey[]} keys
 * @param {string} search
 */
function matching(keys, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  return keys.filter(({ key, meaning }) => {
    const text = `${key} ${meaning}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}
