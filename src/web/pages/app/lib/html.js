// The one door to lit-html. Whatever stands in a `${…}` of its templates becomes text or an attribute, never markup;
// the directives that would make markup of it are not served.
export { html, nothing, render, svg } from '/assets/lit-html/lit-html.js'
export { keyed } from '/assets/lit-html/directives/keyed.js'
export { live } from '/assets/lit-html/directives/live.js'
export { repeat } from '/assets/lit-html/directives/repeat.js'
