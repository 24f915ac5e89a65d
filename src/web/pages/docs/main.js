import { currentSession } from '../app/lib/api.js'
import { html, nothing, render } from '../app/lib/html.js'
import { BRAND } from '../app/lib/theme.js'
import { fetchDocument, inGroups } from './document.js'
import { renderThemeSwitch } from '../app/parts/screen.js'
import { hasWords } from '../app/parts/filter-fields.js'
import { createToast } from '../app/parts/dialog.js'
import { renderAuthentication, renderProblems, renderReceiving } from './guide.js'
import { renderOperation } from './operation.js'
import { inCode } from './schema.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Document, Entry } from './document.js' */

const root = /** @type {HTMLElement} */ (document.getElementById('app'))

/** @type {Document | null} */
let api = null
/** @type {string | null} */
let organisationId = null
let search = ''
let shownEvent = ''
const toast = createToast(() => update())

/** @param {Entry} entry */
function isWanted({ method, path, operation }) {
  return hasWords(`${method} ${path} ${operation.summary} ${operation.operationId}`, search)
}

/** @param {Event} event */
function find(event) {
  search = /** @type {HTMLInputElement} */ (event.currentTarget).value
  update()
}

function update() {
  if (api === null) return
  const shown = api
  const page = { organisationId, update, showMessage: toast.show }
  const groups = [...inGroups(shown)].map(([title, entries]) => ({
    title,
    entries: entries.filter(isWanted),
  }))
  render(
    html`<header class="top">
        <p>
          <a href="/developer">Developer area</a>
          <a href="/openapi.json">openapi.json</a> ${renderThemeSwitch()}
        </p>
        <h1>${BRAND.name} API <span class="faint">${shown.info.version}</span></h1>
        <p>${inCode(shown.info.description)}</p>
        <p>Bodies are JSON in UTF-8. Times are ISO 8601 in UTC.</p>
        <label for="search">Find an operation</label>
        <input id="search" type="search" placeholder="webhooks, POST, retry …" @input=${find} />
      </header>
      ${renderContents(groups, search !== '')}
      <main>
        ${search === '' ? [renderAuthentication(page), renderReceiving(shown, page, shownEvent, choose)] : nothing}
        ${groups.map(({ title, entries }) =>
          entries.length === 0
            ? nothing
            : html`<section>
                <h2>${title}</h2>
                ${entries.map((entry) =>
                  renderOperation(shown, entry, location.hash === `#${entry.operation.operationId}`, page),
                )}
              </section>`,
        )}
        ${search === '' ? renderProblems(shown) : nothing}
      </main>
      ${toast.render()}`,
    root,
  )
}

/** Sections of the guide, before and after the operations. */
const GUIDE = /** @type {const} */ ([
  ['authentication', 'Authentication'],
  ['receiving', 'What your endpoint receives'],
])

/** @typedef {{ title: string, entries: Entry[] }} Group */

/**
 * What the page has, by section; beside it in a wide window, folded above it in a narrow one.
 * @param {readonly Group[]} groups
 * @param {boolean} isSearch only operations are shown then
 * @returns {Template}
 */
function renderContents(groups, isSearch) {
  const current = location.hash.slice(1)
  /**
   * @param {string} id
   * @param {Template | Template[]} words
   */
  const item = (id, words) =>
    html`<li><a href="#${id}" aria-current=${id === current ? 'location' : 'false'}>${words}</a></li>`
  const list = html`<ul class="plain">
      ${isSearch ? nothing : GUIDE.map(([id, words]) => item(id, words))}
    </ul>
    ${groups
      .filter(({ entries }) => entries.length > 0)
      .map(
        ({ title, entries }) =>
          html`<p class="group">${title}</p>
            <ul class="plain">
              ${entries.map(({ operation }) => item(operation.operationId, inCode(operation.summary)))}
            </ul>`,
      )}
    ${
      isSearch
        ? nothing
        : html`<ul class="plain">
            ${item('problems', 'Errors')}
          </ul>`
    }`
  return html`<nav class="contents" aria-label="On this page">
    <div class="wide">${list}</div>
    <details class="narrow">
      <summary>On this page</summary>
      ${list}
    </details>
  </nav>`
}

/** @param {string} key */
function choose(key) {
  shownEvent = key
  update()
}

/** Opens the operation that a link of this page leads to. */
function follow() {
  const target = document.getElementById(location.hash.slice(1))
  if (target instanceof HTMLDetailsElement) target.open = true
  target?.scrollIntoView()
  update()
}

// Without a session, or an answer, the page is there to be read.
Promise.all([fetchDocument(), currentSession().catch(() => null)]).then(
  ([fetched, session]) => {
    api = fetched
    organisationId = session?.organisation.id ?? null
    shownEvent =
      'invoice:paid' in fetched.webhooks ? 'invoice:paid' : (Object.keys(fetched.webhooks)[0] ?? '')
    update()
    follow()
    window.addEventListener('hashchange', follow)
  },
  () => render(html`<p class="alone">The document could not be loaded. Try again.</p>`, root),
)
