import { ApiProblem } from '../lib/api.js'
import { html, nothing } from '../lib/html.js'

/** @import { Template } from '../types.d.ts' */

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
