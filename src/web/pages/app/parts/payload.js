import { html, nothing } from '../lib/html.js'
import { prettyJson } from '../lib/json-text.js'

/** @import { App, Template } from '../types.d.ts' */

/**
 * A body as text: JSON formatted or unchanged, anything else unchanged, with a button that copies it unchanged.
 * @param {App} app
 * @param {string} [label]
 */
export function createPayload(app, label = 'Payload') {
  const what = label.toLowerCase()
  let isRaw = false
  /** @type {{ text: string, pretty: string | null }} `pretty`: null for what is no JSON */
  let shown = { text: '', pretty: null }
  /** @param {boolean} raw */
  const choose = (raw) => () => {
    isRaw = raw
    app.update()
  }
  const forms = () =>
    html`<div class="choice" role="group" aria-label="Form of the ${what}">
      <button type="button" aria-pressed=${isRaw ? 'false' : 'true'} @click=${choose(false)}>Pretty</button>
      <button type="button" aria-pressed=${isRaw ? 'true' : 'false'} @click=${choose(true)}>Raw</button>
    </div>`
  return {
    /**
     * @param {string} text
     * @returns {Template}
     */
    render(text) {
      if (shown.text !== text) shown = { text, pretty: isJson(text) ? prettyJson(text) : null }
      const { pretty } = shown
      return html`<div class="payload">
        <div class="bar">
          <h3>${label}</h3>
          ${pretty === null ? nothing : forms()} ${text === '' ? nothing : copyButton(app, what, text)}
        </div>
        ${
          text === ''
            ? html`<p class="hint">Empty.</p>`
            : html`<pre tabindex="0" role="region" aria-label=${label} class="wrap">
${isRaw || pretty === null ? text : colouredJson(pretty)}</pre>`
        }
      </div>`
    },
  }
}

/**
 * Objects and arrays: a bare word or number is as readable as it came.
 * @param {string} text
 */
function isJson(text) {
  try {
    return typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}

/**
 * @param {Pick<App, 'showMessage'>} app
 * @param {string} what named in the button's label, such as "payload"
 * @param {string} text
 * @returns {Template}
 */
export function copyButton(app, what, text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      app.showMessage(`Copied the ${what}.`)
    } catch {
      app.showMessage(`The browser does not let this page copy. Select the ${what} and copy it yourself.`)
    }
  }
  return html`<button type="button" class="quiet" aria-label="Copy ${what}" @click=${copy}>Copy</button>`
}

/** A longer text is shown without colours: thousands of elements would make the page slow. */
const MAX_COLOURED_LENGTH = 60_000

/** A string, with the colon behind a name; a number; a word. What lies between them has no colour. */
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)/g

/** More than one page shows at once. */
const MAX_KEPT = 10

/** Texts and their tokens, since every rendering asks again; the oldest first. @type {Map<string, Template[]>} */
const kept = new Map()

/**
 * JSON with its tokens coloured, character by character as it is.
 * @param {string} text
 * @returns {Template}
 */
function colouredJson(text) {
  if (text.length > MAX_COLOURED_LENGTH) return text
  const parts = kept.get(text) ?? [...tokens(text)]
  kept.delete(text)
  kept.set(text, parts)
  for (const [oldest] of kept) if (kept.size > MAX_KEPT) kept.delete(oldest)
  return html`${parts}`
}

/**
 * @param {string} text
 * @returns {Generator<Template>}
 */
function* tokens(text) {
  let end = 0
  for (const match of text.matchAll(TOKENS)) {
    const [whole, string, colon, number] = match
    if (match.index > end) yield text.slice(end, match.index)
    end = match.index + whole.length
    if (string === undefined)
      yield html`<span class=${number === undefined ? 'json-word' : 'json-number'}>${whole}</span>`
    else {
      yield html`<span class=${colon === undefined ? 'json-string' : 'json-name'}>${string}</span>`
      if (colon !== undefined) yield colon
    }
  }
  if (end < text.length) yield text.slice(end)
}
