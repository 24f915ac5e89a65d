import { html } from '../lib/html.js'

/** @import { Template } from '../types.d.ts' */

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
export function colouredJson(text) {
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
