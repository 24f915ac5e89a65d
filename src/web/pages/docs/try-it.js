import { html, nothing } from '../app/lib/html.js'
import { BRAND } from '../app/lib/theme.js'
import { headersOf, pathOf } from './request.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Entry } from './document.js' */
/** @import { Filled } from './request.js' */

/**
 * What the page knows while it is shown.
 * @typedef {{ organisationId: string | null, update: () => void, showMessage: (text: string) => void }} Page
 * @typedef {{ filled: Filled, answer: string, isSending: boolean }} Trial
 */

/** @type {Map<string, Trial>} */
const trials = new Map()

/** Answers are shown up to this length. */
const MAX_SHOWN = 20_000

/**
 * A form that sends the request with the session of the developer area.
 * @param {Entry} entry
 * @param {Page} page
 * @param {Filled} example what the form begins with
 * @param {string} variant the body that was chosen
 * @returns {Template}
 */
export function renderTryIt(entry, page, example, variant) {
  const { operationId, security, responses, parameters = [] } = entry.operation
  if (responses['200']?.content?.['text/event-stream'] !== undefined) return nothing
  if (security.length > 0 && !security.some((scheme) => 'session' in scheme)) return nothing
  if (security.length > 0 && page.organisationId === null)
    return html`<p class="hint">
      To try it here, <a href="/developer">sign in to the developer area</a> with your key, then reload this
      page.
    </p>`
  const name = `${operationId} ${variant}`
  const trial = trials.get(name) ?? { filled: example, answer: '', isSending: false }
  trials.set(name, trial)
  const { filled, answer, isSending } = trial
  return html`<form
    class="try"
    aria-label="Try ${operationId}"
    @submit=${(/** @type {Event} */ event) => {
      event.preventDefault()
      void send(entry, trial, page)
    }}
  >
    <h3>Try it</h3>
    ${parameters.map(
      ({ name, required }) =>
        html`<label
          >${name}${required === true ? nothing : html` <span class="hint">optional</span>`}
          <input
            class="mono"
            name=${name}
            autocomplete="off"
            .value=${filled.values[name] ?? ''}
            ?required=${required === true}
            @input=${(/** @type {Event} */ event) => {
              filled.values[name] = /** @type {HTMLInputElement} */ (event.currentTarget).value
            }}
        /></label>`,
    )}
    ${
      filled.body === null
        ? nothing
        : html`<label
            >Body
            <textarea
              class="mono"
              rows=${Math.min(16, filled.body.split('\n').length + 1)}
              .value=${filled.body}
              @input=${(/** @type {Event} */ event) => {
                filled.body = /** @type {HTMLTextAreaElement} */ (event.currentTarget).value
              }}
            ></textarea>
          </label>`
    }
    <p class="buttons">
      <button class=${entry.method === 'DELETE' ? 'danger' : 'primary'} ?disabled=${isSending}>
        Send ${entry.method}
      </button>
    </p>
    ${answer === '' ? nothing : html`<pre tabindex="0" class="wrap" role="status">${answer}</pre>`}
  </form>`
}

/**
 * @param {Entry} entry
 * @param {Trial} trial
 * @param {Page} page
 */
async function send(entry, trial, { update }) {
  const { filled } = trial
  trial.isSending = true
  update()
  try {
    const answer = await fetch(pathOf(entry, filled), {
      method: entry.method,
      credentials: 'same-origin',
      redirect: 'error',
      headers: headersOf(entry, filled),
      ...(filled.body === null ? {} : { body: filled.body }),
    })
    trial.answer = `${String(answer.status)}\n${readable(await answer.text())}`.slice(0, MAX_SHOWN)
  } catch {
    trial.answer = `${BRAND.name} cannot be reached.`
  }
  trial.isSending = false
  update()
}

/** @param {string} text */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
