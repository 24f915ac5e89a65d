import { svg } from '../lib/html.js'

/** @import { Template } from '../types.d.ts' */

/** Strokes on a square of 16; shape alone tells them apart. */
const PATHS = {
  good: 'M2.5 8.5l3.5 3.5 7.5-8',
  bad: 'M8 2L14.5 13.5H1.5zM8 6.5v3.2M8 11.4v.4',
  warn: 'M8 1.8a6.2 6.2 0 1 0 .01 0M8 4.5V8l2.5 1.8',
  busy: 'M13.5 6A6 6 0 0 0 2.6 5M2.5 10a6 6 0 0 0 10.9 1M2.5 2v3.2h3.2M13.5 14v-3.2h-3.2',
  calm: 'M8 1.8a6.2 6.2 0 1 0 .01 0M5 8h6',
  off: 'M8 1.5v6M4.4 4a5.5 5.5 0 1 0 7.2 0',
  lock: 'M3.5 7.5h9v6h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5',
}

/** @typedef {keyof typeof PATHS} IconName */

/**
 * An icon next to a text that says the same.
 * @param {IconName} name
 * @returns {Template}
 */
export function icon(name) {
  return svg`<svg class="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path d=${PATHS[name]} /></svg>`
}
