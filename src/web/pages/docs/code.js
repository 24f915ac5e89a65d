import { html } from '../app/lib/html.js'
import { copyButton } from '../app/parts/payload.js'
import { LANGUAGES } from './languages.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Entry } from './document.js' */
/** @import { Filled } from './request.js' */
/** @import { Page } from './try-it.js' */

/** The language of all examples; the choice is kept until the page is left. */
let language = 'curl'

/**
 * A program or an example with a button that copies it.
 * @param {Page} page
 * @param {string} what named in the button's label
 * @param {string} text
 * @returns {Template}
 */
export function renderCode(page, what, text) {
  return html`<div class="code">
    <pre tabindex="0" class="wrap" role="region" aria-label=${what}>${text}</pre>
    ${copyButton(page, what, text)}
  </div>`
}

/**
 * The example of a request in the language that was chosen.
 * @param {Page} page
 * @param {Entry} entry
 * @param {Filled} filled
 * @returns {Template}
 */
export function renderExample(page, entry, filled) {
  const { operationId } = entry.operation
  const chosen = LANGUAGES.find(({ name }) => name === language) ?? LANGUAGES[0]
  return html`<div class="bar">
      <h3>Example</h3>
      <div class="choice" role="group" aria-label="Language of the example">
        ${LANGUAGES.map(
          ({ name }) =>
            html`<button
              type="button"
              aria-pressed=${name === language ? 'true' : 'false'}
              @click=${() => {
                language = name
                page.update()
              }}
            >
              ${name}
            </button>`,
        )}
      </div>
    </div>
    ${renderCode(page, `${language} for ${operationId}`, chosen?.program(entry, filled, location.origin) ?? '')}`
}
