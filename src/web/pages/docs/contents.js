import { html, nothing } from '../app/lib/html.js'
import { inCode } from './schema.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Entry } from './document.js' */

/** What stands before the operations, and behind them. */
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
export function renderContents(groups, isSearch) {
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
