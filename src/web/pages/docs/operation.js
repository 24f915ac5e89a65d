import { html, nothing } from '../app/lib/html.js'
import { resolved } from './document.js'
import { renderCode, renderExample } from './code.js'
import { exampleRequest } from './request.js'
import { inCode, renderSchema, exampleOf } from './schema.js'
import { renderTryIt } from './try-it.js'
import { selectField } from '../app/parts/filter-fields.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Answer, Content, Document, Entry, Parameter, Schema } from './document.js' */
/** @import { Page } from './try-it.js' */

/** @type {Readonly<Record<string, string>>} */
const TONES = { GET: 'busy', POST: 'good', PATCH: 'warn', DELETE: 'bad' }

/**
 * One operation; closed until it is opened.
 * @param {Document} document
 * @param {Entry} entry
 * @param {boolean} isOpen
 * @param {Page} page
 * @returns {Template}
 */
export function renderOperation(document, entry, isOpen, page) {
  const { method, path, operation } = entry
  const { operationId, summary, description, security, parameters = [], responses } = operation
  const body = chosenVariant(document, entry, page.update)
  const filled = exampleRequest(entry, page.organisationId, body?.variant.example)
  return html`<details class="operation card" id=${operationId} ?open=${isOpen}>
    <summary>
      <span class="method ${TONES[method] ?? ''}">${method}</span> <code>${path}</code>
      <span class="faint">${inCode(summary)}</span>
    </summary>
    ${description === undefined ? nothing : html`<p>${inCode(description)}</p>`}
    ${security.length === 0 ? html`<p class="hint">No key needed.</p>` : nothing} ${body?.choice ?? nothing}
    ${renderExample(page, entry, filled)}
    ${
      parameters.length === 0
        ? nothing
        : html`<h3>Parameters</h3>
            ${renderParameters(document, parameters)}`
    }
    ${
      body === undefined
        ? nothing
        : html`<h3>Body</h3>
            ${renderSchema(document, body.variant.schema)}`
    }
    <h3>Answers</h3>
    ${Object.entries(responses).map(([status, answer]) =>
      renderAnswer(document, page, status, resolved(document, answer)),
    )}
    ${renderTryIt(entry, page, filled, body?.variant.name ?? '')}
  </details>`
}

/**
 * @param {Document} document
 * @param {readonly Parameter[]} parameters
 */
function renderParameters(document, parameters) {
  const properties = Object.fromEntries(
    parameters.map(({ name, schema, description }) => [
      name,
      description === undefined ? schema : { ...resolved(document, schema), description },
    ]),
  )
  const required = parameters.filter((parameter) => parameter.required === true).map(({ name }) => name)
  return renderSchema(document, { properties, required })
}

/**
 * @param {Document} document
 * @param {Page} page
 * @param {string} status
 * @param {Answer} answer
 */
function renderAnswer(document, page, status, { description, content = {}, headers = {} }) {
  const [type, body] = Object.entries(content)[0] ?? []
  const isProblem = type === 'application/problem+json'
  const names = Object.keys(headers)
  const codes = Object.keys(body?.examples ?? {})
  return html`<div class="answer">
    <p>
      <b class=${status.startsWith('2') ? 'good' : 'bad'}>${status}</b> ${inCode(description)}
      ${codes.map((code) => html`<code class="hint">${code}</code> `)}
    </p>
    ${names.length === 0 || isProblem ? nothing : html`<p class="hint">Headers: ${names.join(', ')}</p>`}
    ${body === undefined || isProblem ? nothing : renderSchema(document, body.schema)}
    ${
      body?.example === undefined
        ? nothing
        : html`<details class="example">
            <summary>Example</summary>
            ${renderCode(page, `example of ${status}`, JSON.stringify(body.example, null, 2))}
          </details>`
    }
  </div>`
}

/**
 * One of the bodies that an operation takes. `name`: the event key, the title of its schema in words, or empty where
 * there is only one.
 * @typedef {{ name: string, schema: Schema, example: unknown }} Variant
 */

/** The chosen ones, by the id of their operation. @type {Map<string, string>} */
const choices = new Map()

/**
 * The body of an operation as it was chosen, with the field that chooses it; undefined where it takes none.
 * @param {Document} document
 * @param {Entry} entry
 * @param {() => void} update
 * @returns {{ variant: Variant, choice: Template } | undefined}
 */
function chosenVariant(document, { operation: { operationId, requestBody } }, update) {
  const content = Object.values(requestBody?.content ?? {})[0]
  if (content === undefined) return undefined
  const variants = variantsOf(document, content)
  const variant = variants.find(({ name }) => name === choices.get(operationId)) ?? first(variants, content)
  if (variants.length === 1) return { variant, choice: nothing }
  const label =
    eventKeysOf(document, variant.schema).length > 0 ? 'Event key of the body' : 'Form of the body'
  const names = variants.map(({ name }) => [name])
  const choose = (/** @type {string} */ name) => {
    choices.set(operationId, name)
    update()
  }
  const choice = selectField(label, variant.name, names, choose, '')
  return { variant, choice }
}

/**
 * The one that the example of the document is of.
 * @param {Variant[]} variants
 * @param {Content} content
 */
function first(variants, { example }) {
  const wanted = JSON.stringify(example)
  const found = variants.find((variant) => JSON.stringify(variant.example) === wanted) ?? variants[0]
  return found ?? { name: '', schema: {}, example }
}

/**
 * @param {Document} document
 * @param {Content} content
 * @returns {Variant[]}
 */
function variantsOf(document, { schema, example }) {
  const { oneOf } = resolved(document, schema)
  if (oneOf === undefined) return [{ name: '', schema, example }]
  return oneOf.flatMap((one) => {
    const variant = resolved(document, one)
    const keys = eventKeysOf(document, variant)
    if (keys.length > 0) return keys.map((key) => ofEvent(document, variant, key))
    return [{ name: inWords(variant.title ?? ''), schema: variant, example: exampleOf(document, variant) }]
  })
}

/**
 * @param {Document} document
 * @param {Schema} schema
 * @returns {string[]}
 */
function eventKeysOf(document, { properties }) {
  const event = properties?.['event']
  if (event === undefined) return []
  const { const: value, enum: values = [] } = resolved(document, event)
  return (value === undefined ? values : [value]).map(String)
}

/**
 * @param {Document} document
 * @param {Schema} schema
 * @param {string} key
 * @returns {Variant}
 */
function ofEvent(document, schema, key) {
  const received = document.webhooks[key]?.post.requestBody?.content['application/json']?.example
  const { data = {} } = /** @type {{ data?: unknown }} */ (received ?? {})
  const properties = { ...schema.properties, event: { const: key } }
  return { name: key, schema: { ...schema, properties }, example: { event: key, data } }
}

/**
 * `RetryNamedDeliveries` as `Retry named deliveries`.
 * @param {string} title
 */
function inWords(title) {
  const [head = '', ...others] = title.split(/(?=[A-Z])/)
  return [head, ...others.map((word) => word.toLowerCase())].join(' ')
}
