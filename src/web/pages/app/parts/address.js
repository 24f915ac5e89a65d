import { html } from '../lib/html.js'

/** @import { Template } from '../types.d.ts' */

/**
 * A webhook's URL with its host first to the eye, whole or shortened as the API gives it. Never a link: whose it is,
 * nobody has checked.
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

/** @param {string} text */
export const hostOf = (text) => new URL(text).host
