import { html } from '../app/lib/html.js'
import { copyButton } from '../app/parts/payload.js'
import { shellQuoted, headersOf, pathOf } from './request.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Entry } from './document.js' */
/** @import { Filled } from './request.js' */
/** @import { Page } from './try-it.js' */

/** The language of all examples; the choice is kept until the page is left. */
let language = 'curl'

/**
 * A program or an example with a button that copies it.
 * @param {Page} page
 * @param {string} what named in the button's label
 * @param {string} text
 * @returns {Template}
 */
export function renderCode(page, what, text) {
  return html`<div class="code">
    <pre tabindex="0" class="wrap" role="region" aria-label=${what}>${text}</pre>
    ${copyButton(page, what, text)}
  </div>`
}

/**
 * The example of a request in the language that was chosen.
 * @param {Page} page
 * @param {Entry} entry
 * @param {Filled} filled
 * @returns {Template}
 */
export function renderExample(page, entry, filled) {
  const { operationId } = entry.operation
  const chosen = LANGUAGES.find(({ name }) => name === language) ?? LANGUAGES[0]
  return html`<div class="bar">
      <h3>Example</h3>
      <div class="choice" role="group" aria-label="Language of the example">
        ${LANGUAGES.map(
          ({ name }) =>
            html`<button
              type="button"
              aria-pressed=${name === language ? 'true' : 'false'}
              @click=${() => {
                language = name
                page.update()
              }}
            >
              ${name}
            </button>`,
        )}
      </div>
    </div>
    ${renderCode(page, `${language} for ${operationId}`, chosen?.program(entry, filled, location.origin) ?? '')}`
}

/**
 * A request as a program without packages: for a shell, for Node.js as a module, and for Python 3.
 * @type {readonly { name: string, program: (entry: Entry, filled: Filled, origin: string) => string }[]}
 */
const LANGUAGES = [
  { name: 'curl', program: curlOf },
  { name: 'JavaScript', program: javaScriptOf },
  { name: 'Python', program: pythonOf },
]

/**
 * The header that authenticates a request, and the environment variable that has its value; null where none is needed.
 * @param {Entry} entry
 */
function keyOf({ operation: { security } }) {
  if (security.length === 0) return null
  return security.every((scheme) => 'operatorKey' in scheme)
    ? { header: 'x-operator-key', variable: 'POSTHORN_OPERATOR_KEY' }
    : { header: 'x-api-key', variable: 'POSTHORN_KEY' }
}

/** @param {Entry} entry */
function isStream({ operation: { responses } }) {
  return responses['200']?.content?.['text/event-stream'] !== undefined
}

/**
 * @param {Entry} entry
 * @param {Filled} filled
 * @param {string} origin
 */
function curlOf(entry, filled, origin) {
  const { method } = entry
  const key = keyOf(entry)
  return [
    `curl${isStream(entry) ? ' -N' : ''}${method === 'GET' ? '' : ` -X ${method}`} ${shellQuoted(origin + pathOf(entry, filled))}`,
    ...(key === null ? [] : [`-H "${key.header}: $${key.variable}"`]),
    ...Object.entries(headersOf(entry, filled)).map(
      ([name, value]) => `-H ${shellQuoted(`${name}: ${value}`)}`,
    ),
    ...(filled.body === null ? [] : [`-d ${shellQuoted(filled.body)}`]),
  ].join(' \\\n  ')
}

/**
 * @param {Entry} entry
 * @param {Filled} filled
 * @param {string} origin
 */
function javaScriptOf(entry, filled, origin) {
  const key = keyOf(entry)
  const headers = [
    ...(key === null ? [] : [`    '${key.header}': process.env.${key.variable},`]),
    ...Object.entries(headersOf(entry, filled)).map(
      ([name, value]) => `    '${name}': ${JSON.stringify(value)},`,
    ),
  ]
  return [
    `const response = await fetch(${JSON.stringify(origin + pathOf(entry, filled))}, {`,
    ...(entry.method === 'GET' ? [] : [`  method: '${entry.method}',`]),
    ...(headers.length === 0 ? [] : ['  headers: {', ...headers, '  },']),
    ...(filled.body === null ? [] : [`  body: JSON.stringify(${indented(filled.body, 2)}),`]),
    '})',
    ...(isStream(entry)
      ? ['for await (const chunk of response.body) process.stdout.write(chunk)']
      : ['console.log(response.status, await response.text())']),
  ].join('\n')
}

/**
 * @param {Entry} entry
 * @param {Filled} filled
 * @param {string} origin
 */
function pythonOf(entry, filled, origin) {
  const key = keyOf(entry)
  const headers = [
    ...(key === null ? [] : [`        "${key.header}": os.environ["${key.variable}"],`]),
    ...Object.entries(headersOf(entry, filled)).map(
      ([name, value]) => `        "${name}": ${JSON.stringify(value)},`,
    ),
  ]
  return [
    ...(filled.body === null ? [] : ['import json']),
    ...(key === null ? [] : ['import os']),
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    ${JSON.stringify(origin + pathOf(entry, filled))},`,
    `    method="${entry.method}",`,
    ...(headers.length === 0 ? [] : ['    headers={', ...headers, '    },']),
    ...(filled.body === null
      ? []
      : [`    data=json.dumps(${indented(pythonValue(JSON.parse(filled.body)), 4)}).encode(),`]),
    ')',
    'with urllib.request.urlopen(request) as response:',
    ...(isStream(entry)
      ? ['    for line in response:', '        print(line.decode(), end="")']
      : ['    print(response.status, response.read().decode())']),
  ].join('\n')
}

/**
 * A value of JSON as Python writes it.
 * @param {unknown} value
 * @returns {string}
 */
function pythonValue(value) {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const isList = Array.isArray(value)
  const lines = Object.entries(value).map(
    ([name, one]) => `    ${isList ? '' : `${JSON.stringify(name)}: `}${indented(pythonValue(one), 4)},\n`,
  )
  const [open, close] = isList ? '[]' : '{}'
  return lines.length === 0
    ? `${String(open)}${String(close)}`
    : `${String(open)}\n${lines.join('')}${String(close)}`
}

/**
 * Moves every line but the first one to the right.
 * @param {string} text
 * @param {number} spaces
 */
function indented(text, spaces) {
  return text.replaceAll('\n', `\n${' '.repeat(spaces)}`)
}
