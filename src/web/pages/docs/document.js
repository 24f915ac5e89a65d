/**
 * The parts of an OpenAPI 3.1 document that are shown.
 * @typedef {{
 *   $ref?: string, type?: string | string[], format?: string, description?: string, enum?: unknown[], const?: unknown,
 *   properties?: Record<string, Schema>, required?: string[], items?: Schema, anyOf?: Schema[],
 *   additionalProperties?: boolean | Schema, patternProperties?: Record<string, Schema>,
 *   minimum?: number, maximum?: number, minLength?: number, maxLength?: number, minItems?: number, maxItems?: number,
 *   pattern?: string, default?: unknown,
 * }} Schema
 * @typedef {{ name: string, in: string, required?: boolean, description?: string, schema: Schema }} Parameter
 * @typedef {{ $ref?: string, description?: string }} Header
 * @typedef {{ description: string, headers?: Record<string, Header>, content?: Record<string, { schema: Schema }> }} Answer
 * @typedef {{
 *   operationId: string, summary: string, description?: string, security: object[], parameters?: Parameter[],
 *   requestBody?: { content: Record<string, { schema: Schema }> }, responses: Record<string, Answer>,
 * }} Operation
 * @typedef {{
 *   info: { title: string, version: string, description: string },
 *   paths: Record<string, Record<string, Operation>>, components: { schemas: Record<string, Schema> },
 * }} Document
 * @typedef {{ method: string, path: string, operation: Operation }} Entry
 */

/** @returns {Promise<Document>} */
export async function fetchDocument() {
  const answer = await fetch('/openapi.json')
  if (!answer.ok) throw new Error(`HTTP ${String(answer.status)}`)
  /** @type {unknown} */
  const document = await answer.json()
  return /** @type {Document} */ (document)
}

const TITLES = new Map([
  ['webhooks', 'Webhooks'],
  ['deliveries', 'Deliveries'],
  ['events', 'Events'],
  ['incidents', 'Incidents'],
  ['push-subscriptions', 'Push subscriptions'],
  ['audit', 'Audit trail'],
  ['session', 'Sessions'],
  ['service', 'Service'],
])

/**
 * The operations in groups, by what their paths are about.
 * @param {Document} document
 * @returns {Map<string, Entry[]>}
 */
export function inGroups({ paths }) {
  const entries = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
  return new Map(
    [...TITLES].map(([name, title]) => [title, entries.filter(({ path }) => groupOf(path) === name)]),
  )
}

/** @param {string} path */
function groupOf(path) {
  if (/deliver|discard|overview|activity|\/test$/.test(path)) return 'deliveries'
  if (path.includes('/incidents')) return 'incidents'
  if (path === '/api/event-keys') return 'events'
  const [, first, second, , fourth] = path.split('/')
  if (first !== 'api') return 'service'
  const name = second === 'orgs' ? fourth : second
  return name !== undefined && TITLES.has(name) ? name : 'service'
}

/**
 * What a reference of the document points to; the schema itself where it is none.
 * @param {Document} document
 * @param {Schema} schema
 */
export function resolved({ components }, schema) {
  const name = schema.$ref?.replace('#/components/schemas/', '')
  return name === undefined ? schema : (components.schemas[name] ?? schema)
}
