/** @import { Entry, Parameter } from './document.js' */

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
