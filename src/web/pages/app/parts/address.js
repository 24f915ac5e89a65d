import { html, nothing } from '../lib/html.js'

/** @import { Overview, Template } from '../types.d.ts' */

/** A shortened URL has so many characters at most. */
const MAX_SHORT_LENGTH = 31

/**
 * A webhook's URL with its host first to the eye, whole or shortened as the API gives it. Never a link: its
 * owner is not verified.
 * @param {string} text
 * @returns {Template}
 */
export function address(text) {
  const url = new URL(text)
  const scheme = url.protocol === 'https:' ? '' : `${url.protocol}//`
  return html`<span class="address" title=${text}
    ><span class="faint">${scheme}</span><b>${url.host}</b
    ><span class="path">${text.slice(url.origin.length)}</span></span
  >`
}

/**
 * Host and path: one host may have several webhooks.
 * @param {string} text
 */
export function shortName(text) {
  const { host, pathname } = new URL(text)
  return `${host}${pathname}`
}

/**
 * A URL on one line: its query, which may be a credential, is masked, and the middle of a long path is left out.
 * @param {string} text
 * @param {number} [maxLength]
 * @returns {Template}
 */
export function shortAddress(text, maxLength = MAX_SHORT_LENGTH) {
  const { origin, host, search } = new URL(text)
  const path = text.slice(origin.length).replace(/[?#].*$/, '')
  const room = Math.max(10, maxLength - host.length)
  return html`<span class="address"
    ><b>${host}</b
    ><span class="path">${middleShortened(path, room)}${search === '' ? nothing : '?…'}</span></span
  >`
}

/**
 * @param {string} text
 * @param {number} maxLength
 */
function middleShortened(text, maxLength) {
  if (text.length <= maxLength) return text
  const head = Math.ceil((maxLength - 1) * 0.6)
  return `${text.slice(0, head)}…${text.slice(head + 1 - maxLength)}`
}

/**
 * What people call a webhook: its description, or host and shortened path where it has none. It stands inside of
 * sentences and titles: an old description may still set the direction of text, which would reorder them.
 * @param {Pick<Overview, 'description' | 'name'>} webhook
 * @returns {string}
 */
export function nameOf({ description, name }) {
  return description === '' ? name : description.replace(/\p{Bidi_Control}/gu, '')
}
