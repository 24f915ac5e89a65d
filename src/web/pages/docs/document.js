import { call, parsed } from '../app/lib/api.js'

/**
 * The parts of an OpenAPI 3.1 document that are shown.
 * @typedef {{
 *   $ref?: string, type?: string | string[], format?: string, description?: string, enum?: unknown[], const?: unknown,
 *   properties?: Record<string, Schema>, required?: string[], items?: Schema, anyOf?: Schema[], oneOf?: Schema[],
 *   additionalProperties?: boolean | Schema, patternProperties?: Record<string, Schema>, title?: string,
 *   minimum?: number, maximum?: number, minLength?: number, maxLength?: number, minItems?: number, maxItems?: number,
 *   pattern?: string, default?: unknown, examples?: unknown[], 'x-enum-descriptions'?: Record<string, string>,
 * }} Schema
 * @typedef {{
 *   $ref?: string, name: string, in: string, required?: boolean, description?: string, schema: Schema,
 *   example?: unknown,
 * }} Parameter
 * @typedef {{ $ref?: string, description?: string }} Header
 * @typedef {{ summary: string, description: string, value: { status: number, title: string } }} Example
 * @typedef {{ schema: Schema, example?: unknown, examples?: Record<string, Example> }} Content
 * @typedef {{
 *   $ref?: string, description: string, headers?: Record<string, Header>, content?: Record<string, Content>,
 * }} Answer
 * @typedef {{
 *   operationId: string, summary: string, description?: string, tags: string[], security: Record<string, unknown>[],
 *   parameters?: Parameter[], requestBody?: { content: Record<string, Content> }, responses: Record<string, Answer>,
 * }} Operation
 * @typedef {{
 *   info: { version: string, description: string }, tags: { name: string }[],
 *   paths: Record<string, Record<string, Operation>>, webhooks: Record<string, { post: Operation }>,
 *   components: {
 *     schemas: Record<string, Schema>, parameters: Record<string, Parameter>, responses: Record<string, Answer>,
 *   },
 * }} Document
 * @typedef {{ method: string, path: string, operation: Operation }} Entry
 */

/** @returns {Promise<Document>} */
export async function fetchDocument() {
  return parsed(await call('GET', '/openapi.json'))
}

/**
 * The operations in groups, by their tags.
 * @param {Document} document
 * @returns {Map<string, Entry[]>}
 */
export function inGroups({ paths, tags }) {
  const entries = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
  return new Map(
    tags.map(({ name }) => [name, entries.filter(({ operation }) => operation.tags.includes(name))]),
  )
}

/** A reference may lead to others; one that leads to itself is followed no further. */
const MAX_REFERENCES = 8

/**
 * What a reference of the document points to, nothing where it points to no member of it; the value itself where it is
 * no reference.
 * @template {{ $ref?: string }} T
 * @param {Document} document
 * @param {T} value
 * @returns {T}
 */
export function resolved(document, value) {
  let found = value
  for (let count = 0; found.$ref !== undefined; count++) {
    const [root, ...names] = decodeURIComponent(found.$ref).split('/')
    if (root !== '#' || count === MAX_REFERENCES) return /** @type {T} */ ({})
    /** @type {unknown} */
    let member = document
    for (const name of names)
      member = /** @type {Record<string, unknown> | undefined} */ (member)?.[
        name.replaceAll('~1', '/').replaceAll('~0', '~')
      ]
    found = /** @type {T} */ (member ?? {})
  }
  return found
}

/**
 * Every problem code with its status, cause and cure, in the order of the statuses.
 * @param {Document} document
 * @returns {[code: string, example: Example][]}
 */
export function problemsOf({ components, paths }) {
  const own = Object.values(paths).flatMap((operations) =>
    Object.values(operations).flatMap(({ responses }) => Object.values(responses)),
  )
  const examples = [...Object.values(components.responses), ...own].flatMap(({ content = {} }) =>
    Object.entries(content['application/problem+json']?.examples ?? {}),
  )
  return [...new Map(examples)].sort(([, a], [, b]) => a.value.status - b.value.status)
}
