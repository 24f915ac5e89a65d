import { html, nothing } from '../app/lib/html.js'
import { resolved } from './document.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Document, Schema } from './document.js' */

/** Fields further down are not shown. */
const MAX_DEPTH = 8

/** Longer lists of values and patterns are said in words. */
const MAX_SHOWN_VALUES = 12
const MAX_SHOWN_PATTERN = 120

/**
 * The fields of a schema, and of those below them; those of a schema that contains itself once.
 * @param {Document} document
 * @param {Schema} given
 * @param {readonly Schema[]} [above] the objects that contain it
 * @returns {Template}
 */
export function renderSchema(document, given, above = []) {
  const schema = resolved(document, given)
  const object = objectIn(document, schema)
  const within = object === undefined ? above : [...above, object]
  const fields = Object.entries(object?.properties ?? {})
  if (fields.length === 0) return html`<p class="type">${typeOf(document, schema)} ${describe(schema)}</p>`
  return html`<dl class="schema">
    ${fields.map(([name, field]) => {
      const type = resolved(document, field)
      const inner = objectIn(document, type)
      const isRequired = object?.required?.includes(name) === true
      return html`<div>
        <dt>
          <code>${name}</code> <span class="type">${typeOf(document, type)}</span>
          ${isRequired ? nothing : html`<span class="hint">optional</span>`}
        </dt>
        <dd>
          ${describe(type)}
          ${
            inner === undefined || within.includes(inner) || within.length > MAX_DEPTH
              ? nothing
              : renderSchema(document, type, within)
          }
        </dd>
      </div>`
    })}
  </dl>`
}

/**
 * The object with fields that a schema is, is a list of, or may be.
 * @param {Document} document
 * @param {Schema} given
 * @param {readonly Schema[]} [above] the schemas that it is a part of
 * @returns {Schema | undefined}
 */
function objectIn(document, given, above = []) {
  const schema = resolved(document, given)
  if (above.includes(schema)) return undefined
  const { properties, items, anyOf, oneOf } = schema
  if (Object.keys(properties ?? {}).length > 0) return schema
  const parts = items === undefined ? (anyOf ?? oneOf ?? []) : [items]
  return parts.map((one) => objectIn(document, one, [...above, schema])).find((found) => found !== undefined)
}

/**
 * @param {Document} document
 * @param {Schema} given
 * @param {readonly Schema[]} [above] the schemas that it is a part of
 * @returns {string}
 */
function typeOf(document, given, above = []) {
  const schema = resolved(document, given)
  if (above.includes(schema)) return 'the same'
  const partOf = (/** @type {Schema} */ part) => typeOf(document, part, [...above, schema])
  const { type, items, enum: values, const: value, format, title } = schema
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined && choices.length > MAX_SHOWN_VALUES) return 'object'
  if (choices !== undefined) return [...new Set(choices.map(partOf))].join(' or ')
  if (values !== undefined && values.length > MAX_SHOWN_VALUES)
    return `one of ${String(values.length)} values${title === undefined ? '' : ` (${title})`}`
  if (values !== undefined) return values.map((one) => JSON.stringify(one)).join(' | ')
  if (value !== undefined) return JSON.stringify(value)
  if (items !== undefined) return `list of ${partOf(items)}`
  const name = Array.isArray(type) ? type.join(' or ') : (type ?? 'any')
  return format === undefined ? name : `${name} (${format})`
}

/**
 * @param {Schema} schema
 * @returns {Template}
 */
function describe({
  description,
  minimum,
  maximum,
  minLength,
  maxLength,
  minItems,
  maxItems,
  pattern,
  default: usual,
}) {
  const bounds = [
    range(minimum, maximum, ''),
    range(minLength, maxLength, ' characters'),
    range(minItems, maxItems, ' items'),
    pattern === undefined || pattern.length > MAX_SHOWN_PATTERN ? '' : `pattern ${pattern}`,
    usual === undefined ? '' : `default ${JSON.stringify(usual)}`,
  ].filter(Boolean)
  if (description === undefined && bounds.length === 0) return nothing
  return html`<span class="hint"
    >${inCode([description ?? '', bounds.join(', ')].filter(Boolean).join(' · '))}</span
  >`
}

/**
 * @param {number | undefined} min
 * @param {number | undefined} max
 * @param {string} unit
 */
function range(min, max, unit) {
  if (min === undefined && max === undefined) return ''
  if (min === undefined) return `at most ${String(max)}${unit}`
  return max === undefined ? `at least ${String(min)}${unit}` : `${String(min)} to ${String(max)}${unit}`
}

/**
 * A value of a schema: its own example, or one made of those of its required fields.
 * @param {Document} document
 * @param {Schema} given
 * @returns {unknown}
 */
export function exampleOf(document, given) {
  const {
    examples,
    const: value,
    default: usual,
    enum: values,
    items,
    properties,
    ...schema
  } = resolved(document, given)
  const known = [examples?.[0], value, usual, values?.[0]].find((one) => one !== undefined)
  if (known !== undefined) return known
  const [one] = schema.anyOf ?? schema.oneOf ?? []
  if (one !== undefined) return exampleOf(document, one)
  if (items !== undefined) return [exampleOf(document, items)]
  const { required = [] } = schema
  const fields = Object.entries(properties ?? {}).filter(([name]) => required.includes(name))
  return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(document, field)]))
}

/**
 * Text with what stands between backquotes as code.
 * @param {string} text
 * @returns {Template[]}
 */
export function inCode(text) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))
}
