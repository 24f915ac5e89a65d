import { html, nothing, render } from '../app/lib/html.js'
import { fetchDocument, inGroups } from './document.js'
import { renderOperation } from './operation.js'
import { inCode, renderSchema } from './schema.js'

/** @import { Document, Entry } from './document.js' */

const root = /** @type {HTMLElement} */ (document.getElementById('app'))

/** @type {Document | null} */
let api = null
let search = ''

/** @param {Entry} entry */
function isWanted({ method, path, operation }) {
  const text = `${method} ${path} ${operation.summary} ${operation.operationId}`.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

/** @param {Event} event */
function find(event) {
  search = /** @type {HTMLInputElement} */ (event.currentTarget).value
  update()
}

function update() {
  if (api === null) return
  const shown = api
  const groups = [...inGroups(shown)].map(([title, entries]) => ({
    title,
    entries: entries.filter(isWanted),
  }))
  render(
    html`<header class="top">
        <p><a href="/developer">Developer area</a> <a href="/openapi.json">openapi.json</a></p>
        <h1>${shown.info.title} API <span class="faint">${shown.info.version}</span></h1>
        <p>${inCode(shown.info.description)}</p>
        <p>
          Send your API key in the header <code>x-api-key</code>. Bodies are JSON in UTF-8. Times are ISO 8601
          in UTC.
        </p>
        <label for="search">Find an operation</label>
        <input id="search" type="search" placeholder="webhooks, POST, retry …" @input=${find} />
      </header>
      <main>
        ${groups.map(({ title, entries }) =>
          entries.length === 0
            ? nothing
            : html`<section>
                <h2>${title}</h2>
                ${entries.map((entry) =>
                  renderOperation(shown, entry, location.hash === `#${entry.operation.operationId}`),
                )}
              </section>`,
        )}
        ${search === '' ? renderProblems(shown) : nothing}
      </main>`,
    root,
  )
}

/** @param {Document} shown */
function renderProblems(shown) {
  const problem = shown.components.schemas['Problem']
  return html`<section>
    <h2>Errors</h2>
    <div class="card">
      <p>Every refusal is <code>application/problem+json</code> (RFC 9457):</p>
      ${problem === undefined ? nothing : renderSchema(shown, problem)}
    </div>
  </section>`
}

fetchDocument().then(
  (fetched) => {
    api = fetched
    update()
    document.getElementById(location.hash.slice(1))?.scrollIntoView()
  },
  () => render(html`<p class="alone">The document could not be loaded. Try again.</p>`, root),
)
