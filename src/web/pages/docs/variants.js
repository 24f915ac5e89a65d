import { nothing } from '../app/lib/html.js'
import { selectField } from '../app/parts/filter-fields.js'
import { resolved } from './document.js'
import { exampleOf } from './schema.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Content, Document, Entry, Schema } from './document.js' */

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
export function chosenVariant(document, { operation: { operationId, requestBody } }, update) {
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
