import { ApiProblem } from '../lib/api.js'
import { html, nothing } from '../lib/html.js'
import { duration } from '../lib/times.js'

/** @import { Answers } from '../lib/poll.js' */
/** @import { App, Template } from '../types.d.ts' */

/** What pages call the fields that filter lists. @type {Readonly<Record<string, string>>} */
const FIELDS = {
  '/state': 'State',
  '/eventKey': 'Event key',
  '/statusCode': 'Status code',
  '/since': 'From',
  '/until': 'Until',
  '/search': 'Search',
  '/failureCode': 'Failure code',
  '/attemptedSince': 'Attempted from',
  '/attemptedUntil': 'Attempted until',
  '/memberId': 'Member',
  '/action': 'Action',
  '/name': 'Name',
  '/reason': 'Reason',
  '/expiresAt': 'Expires',
}

/**
 * What went wrong, in the API's words, with the names that its fields have in the pages.
 * @param {unknown} error
 * @returns {string}
 */
export function inWords(error) {
  if (!(error instanceof ApiProblem)) return 'That did not work. Try again.'
  const { code, errors = [] } = error.problem
  if (code === 'invalid_cursor') return 'This list has no such page. Go to a newer one.'
  const known = errors.flatMap(({ pointer, detail }) =>
    FIELDS[pointer] === undefined ? [] : `${FIELDS[pointer]} ${detail}.`,
  )
  return known.length > 0 ? known.join(' ') : error.message
}

/**
 * @param {string} text nothing for an empty one
 * @returns {Template}
 */
export function problemNote(text) {
  return text === '' ? nothing : html`<p class="problem" role="alert">${text}</p>`
}

/**
 * Says how old what is shown is, where a newer state was asked for in vain; otherwise what went wrong, if anything did.
 * @param {Pick<App, 'times'>} app
 * @param {Pick<Answers, 'problem' | 'silence'>} answers
 * @returns {Template}
 */
export function staleNote({ times }, { problem, silence }) {
  const silent = silence()
  if (silent === null) return problemNote(problem)
  const { forMs, answeredAt } = silent
  // The seconds change all the time: a screen reader announces only the problem, once.
  return html`<p class="problem" role="alert">
    ${problem}
    <span aria-hidden="true"
      >No answer for ${duration(forMs)}; this is how it stood at ${times.clock(answeredAt)}.</span
    >
  </p>`
}
