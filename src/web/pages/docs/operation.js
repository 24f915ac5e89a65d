import { html, nothing } from '../app/lib/html.js'
import { resolved } from './document.js'
import { renderCode, renderExample } from './code.js'
import { exampleRequest } from './request.js'
import { inCode, renderSchema } from './schema.js'
import { renderTryIt } from './try-it.js'
import { chosenVariant } from './variants.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Answer, Document, Entry, Parameter } from './document.js' */
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
