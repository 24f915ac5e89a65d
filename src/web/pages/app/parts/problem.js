import { ApiProblem } from '../lib/api.js'
import { html, nothing } from '../lib/html.js'

/** @import { Template } from '../types.d.ts' */

/**
 * What went wrong, in the API's words.
 * @param {unknown} error
 * @returns {string}
 */
export function inWords(error) {
  return error instanceof ApiProblem ? error.message : 'That did not work. Try again.'
}

/**
 * @param {string} text nothing for an empty one
 * @returns {Template}
 */
export function problemNote(text) {
  return text === '' ? nothing : html`<p class="problem" role="alert">${text}</p>`
}
