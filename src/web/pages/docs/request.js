/** @import { Entry, Parameter } from './document.js' */
/** @import { SignedRequest } from '../app/types.d.ts' */

/** A delivery that can be recomputed; a test does. */
export const SECRET = '6f0b8f0a3d5c4e219a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f'
export const BODY =
  '{"event":"comment:created","data":{"id":"com_1"},"timestamp":1777885331000,"traceId":"6c42567ab0f8157384bcb87bd270b3cb","triggeredBy":null}'
export const SIGNATURE = 'sha256=238ec1e9ff5c683eddf7f46183fd4032b7f131923e63c77b85a5ced67e604b0e'
export const EVENT_ID = '0198f6a4-51c2-7b3e-9d70-2f4c8a1b6e35'

/**
 * The values of a request by the names of its parameters, and the text of its body.
 * @typedef {{ values: Record<string, string>, body: string | null }} Filled
 */

/**
 * A request made of the examples of the document, in the organisation of the session.
 * @param {Entry} entry
 * @param {string | null} organisationId null without a session
 * @param {unknown} body undefined for none
 * @returns {Filled}
 */
export function exampleRequest({ operation }, organisationId, body) {
  const { parameters = [] } = operation
  const shown = parameters.filter(({ required, example }) => required === true && example !== undefined)
  const values = Object.fromEntries(shown.map(({ name, example }) => [name, String(example)]))
  if (organisationId !== null && 'orgId' in values) values['orgId'] = organisationId
  return { values, body: body === undefined ? null : JSON.stringify(body, null, 2) }
}

/**
 * @param {Entry} entry
 * @param {Filled} filled
 * @returns {string} the path with its query
 */
export function pathOf({ path, operation }, { values }) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[String(name)] ?? ''))
  const query = new URLSearchParams(given(operation.parameters, 'query', values)).toString()
  return query === '' ? filled : `${filled}?${query}`
}

/**
 * @param {Entry} entry
 * @param {Filled} filled
 * @returns {Record<string, string>}
 */
export function headersOf({ operation }, { values, body }) {
  return {
    ...(body === null ? {} : { 'content-type': 'application/json' }),
    ...Object.fromEntries(given(operation.parameters, 'header', values)),
  }
}

/**
 * @param {readonly Parameter[] | undefined} parameters
 * @param {string} place
 * @param {Record<string, string>} values
 * @returns {[name: string, value: string][]}
 */
function given(parameters = [], place, values) {
  return parameters
    .filter((parameter) => parameter.in === place)
    .map(({ name }) => /** @type {[string, string]} */ ([name, values[name] ?? '']))
    .filter(([, value]) => value !== '')
}

/**
 * One word for a POSIX shell, whatever is in it.
 * @param {string} text
 */
export function shellQuoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * A command that sends the request. `--globoff`: brackets in a URL are no patterns; `--data-raw`: a body that begins with
 * `@` names no file.
 * @param {SignedRequest} request
 */
export function curlCommand({ method, url, headers, body }) {
  const lines = [
    `curl --globoff --request ${method} ${shellQuoted(url)}`,
    ...Object.entries(headers).map(([name, value]) => `--header ${shellQuoted(`${name}: ${value}`)}`),
    `--data-raw ${shellQuoted(body)}`,
  ]
  return lines.join(' \\\n  ')
}
