import { html } from '../lib/html.js'
import { duration } from '../lib/times.js'
import { problemNote } from './problem.js'

/** @import { App, Template } from '../types.d.ts' */

/**
 * Says how old what is shown is, where a newer state was asked for in vain; otherwise what went wrong, if anything did.
 * @param {Pick<App, 'times'>} app
 * @param {{ silence(): { forMs: number, answeredAt: number } | null }} asking
 * @param {string} problem
 * @returns {Template}
 */
export function staleNote({ times }, asking, problem) {
  const silence = asking.silence()
  if (silence === null) return problemNote(problem)
  const { forMs, answeredAt } = silence
  // The seconds go on by themselves: a screen reader is told the problem once.
  return html`<p class="problem" role="alert">
    ${problem}
    <span aria-hidden="true"
      >No answer for ${duration(forMs)}; this is how it stood at ${times.clock(answeredAt)}.</span
    >
  </p>`
}
