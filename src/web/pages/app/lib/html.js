// The one door to lit-html. Whatever stands in a `${…}` of its templates becomes text or an attribute, never markup;
// the directives that would make markup of it are not imported.
export { html, nothing, render, svg } from 'lit-html'
export { keyed } from 'lit-html/directives/keyed.js'
export { live } from 'lit-html/directives/live.js'
export { repeat } from 'lit-html/directives/repeat.js'

/**
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export function element(selector) {
  return document.querySelector(selector)
}
