import { html, nothing } from '../app/lib/html.js'
import { resolved } from './document.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Document, Schema } from './document.js' */

/**
 * The fields of a schema, and of those below them.
 * @param {Document} document
 * @param {Schema} given
 * @returns {Template}
 */
export function renderSchema(document, given) {
  const schema = resolved(document, given)
  const object = objectIn(schema)
  const fields = Object.entries(object?.properties ?? {})
  if (fields.length === 0) return html`<p class="type">${typeOf(schema)}${describe(schema)}</p>`
  return html`<dl class="schema">
    ${fields.map(([name, field]) => {
      const type = resolved(document, field)
      const isRequired = object?.required?.includes(name) === true
      return html`<div>
        <dt>
          <code>${name}</code> <span class="type">${typeOf(type)}</span>
          ${isRequired ? nothing : html`<span class="hint">optional</span>`}
        </dt>
        <dd>
          ${describe(type)}
          ${objectIn(type)?.properties === undefined ? nothing : renderSchema(document, type)}
        </dd>
      </div>`
    })}
  </dl>`
}

/**
 * The object that a schema is, is a list of, or may be.
 * @param {Schema} schema
 * @returns {Schema | undefined}
 */
function objectIn(schema) {
  if (schema.properties !== undefined) return schema
  if (schema.items !== undefined) return objectIn(schema.items)
  return schema.anyOf?.map(objectIn).find((found) => found !== undefined)
}

/**
 * @param {Schema} schema
 * @returns {string}
 */
function typeOf({ type, anyOf, items, enum: values, const: value, format, patternProperties }) {
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ')
  if (values !== undefined) return values.map((one) => JSON.stringify(one)).join(' | ')
  if (value !== undefined) return JSON.stringify(value)
  if (items !== undefined) return `list of ${typeOf(items)}`
  if (patternProperties !== undefined) return 'object of strings'
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
    pattern === undefined ? '' : `pattern ${pattern}`,
    usual === undefined ? '' : `default ${JSON.stringify(usual)}`,
  ].filter(Boolean)
  if (description === undefined && bounds.length === 0) return nothing
  return html`<span class="hint"
    >${inCode([description ?? '', bounds.join(', ')].filter(Boolean).join(' · '))}</span
  >`
}

/**
 * @param {number | undefined} least
 * @param {number | undefined} most
 * @param {string} unit
 */
function range(least, most, unit) {
  if (least === undefined && most === undefined) return ''
  if (least === undefined) return `at most ${String(most)}${unit}`
  return most === undefined
    ? `at least ${String(least)}${unit}`
    : `${String(least)} to ${String(most)}${unit}`
}

/**
 * Text with what stands between backquotes as code.
 * @param {string} text
 * @returns {Template[]}
 */
export function inCode(text) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))
}
