import fc from 'fast-check'

/** A JSON schema of the OpenAPI document. */
type Schema = Readonly<Record<string, unknown>>

type Parameter = { name: string; in: string; required: boolean; schema: Schema }
export type DocumentedOperation = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, object>
}

/** A request as the document allows it. */
export type DocumentedRequest = {
  path: Record<string, string>
  query: Record<string, string>
  headers: Record<string, string>
  body: unknown
}

/** Requests of the operation that fit its schemas; `known`: ids that exist, used half of the time. */
export function requestsOf(
  document: object,
  { parameters = [], requestBody }: DocumentedOperation,
  known: Readonly<Record<string, string>>,
): fc.Arbitrary<DocumentedRequest> {
  const ofPlace = (place: string): fc.Arbitrary<Record<string, string>> => {
    const there = parameters.filter((parameter) => parameter.in === place)
    const values = there.map(({ name, schema, required }) => {
      const text = valuesOf(document, schema).map(String)
      const given = known[name]
      const value = given === undefined ? text : fc.oneof(fc.constant(given), text)
      return [name, required ? value : fc.option(value, { nil: undefined })] as const
    })
    return fc.record(Object.fromEntries(values)).map(withoutUndefined)
  }
  const [content] = Object.values(requestBody?.content ?? {})
  return fc.record({
    path: ofPlace('path'),
    query: ofPlace('query'),
    headers: ofPlace('header'),
    body: content === undefined ? fc.constant(undefined) : valuesOf(document, content.schema),
  })
}

/** Values that fit the schema, as far as documents of ours use the keywords. */
function valuesOf(document: object, given: Schema): fc.Arbitrary<unknown> {
  const schema = resolveReference(document, given)
  if ('const' in schema) return fc.constant(schema['const'])
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]))
  const choices = (schema['oneOf'] ?? schema['anyOf']) as Schema[] | undefined
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => valuesOf(document, choice)))
  // As far as we use the keyword: a branch adds to the schema what the other one does not have.
  if ('if' in schema)
    return fc.oneof(
      ...[schema['then'], schema['else']].map((branch) =>
        valuesOf(document, { ...withoutBranches(schema), ...(branch as Schema) }),
      ),
    )
  const types = [schema['type']].flat()
  return fc.oneof(...types.map((type) => valuesOfType(document, { ...schema, type })))
}

function valuesOfType(document: object, schema: Schema): fc.Arbitrary<unknown> {
  const { type, minimum: min, maximum: max, minItems: minLength, maxItems, items } = schema as Numbers
  switch (type) {
    case 'integer':
      return fc.integer({ min: min ?? -1_000, max: Math.min(max ?? 1_000, Number.MAX_SAFE_INTEGER) })
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array': {
      const each = valuesOf(document, items ?? {})
      const bounds = { minLength: minLength ?? 0, maxLength: Math.min(maxItems ?? 5, 20) }
      return schema['uniqueItems'] === true ? fc.uniqueArray(each, bounds) : fc.array(each, bounds)
    }
    case 'object':
      return objects(document, schema)
    default:
      return texts(schema)
  }
}

type Numbers = {
  type?: string
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  items?: Schema
}

function objects(document: object, schema: Schema): fc.Arbitrary<unknown> {
  // What is read-only has no place in a request (OpenAPI 3.1).
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>).filter(
    ([, below]) => resolveReference(document, below)['readOnly'] !== true,
  )
  const required = (schema['required'] ?? []) as string[]
  const least = (schema['minProperties'] ?? 0) as number
  const fields = Object.fromEntries(properties.map(([name, below]) => [name, valuesOf(document, below)]))
  const listed = fc.record(fields, { requiredKeys: required })
  const more =
    schema['additionalProperties'] === true
      ? fc.dictionary(fc.stringMatching(/^more[a-z]{1,5}$/), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 2 })
      : fc.constant({})
  return fc
    .tuple(more, listed)
    .map(([others, own]) => ({ ...others, ...own }))
    .filter((value) => Object.keys(value).length >= least)
}

function texts(schema: Schema): fc.Arbitrary<string> {
  const {
    pattern,
    format,
    minLength = 0,
    maxLength = 300,
  } = schema as {
    pattern?: string
    format?: string
    minLength?: number
    maxLength?: number
  }
  const isWithin = (text: string) => text.length >= minLength && text.length <= maxLength
  if (format === 'date-time')
    return fc
      .date({
        noInvalidDate: true,
        min: new Date('0000-01-01T00:00:00Z'),
        max: new Date('9999-12-31T23:59:59Z'),
      })
      .map((date) => date.toISOString())
  if (format === 'ipv4') return fc.ipV4()
  if (format === 'ipv6') return fc.ipV6()
  if (pattern !== undefined) return matching(pattern).filter(isWithin)
  if (format === 'uuid') return fc.uuid()
  return fc.string({ minLength, maxLength: Math.min(maxLength, 50) })
}

const byPattern = new Map<string, fc.Arbitrary<string>>()

/** Made once for each pattern, which takes longer than a request. */
function matching(pattern: string): fc.Arbitrary<string> {
  const made = byPattern.get(pattern) ?? fc.stringMatching(new RegExp(pattern))
  byPattern.set(pattern, made)
  return made
}

function withoutBranches(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !['if', 'then', 'else'].includes(name)))
}

function withoutUndefined(values: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

/** Returns what a `$ref` into the document points to, or the value itself. */
export function resolveReference<T extends object>(document: object, value: T): T {
  if (!('$ref' in value)) return value
  const steps = String(value.$ref).replace('#/', '').split('/')
  let found: unknown = document
  for (const step of steps)
    found = (found as Record<string, unknown>)[step.replaceAll('~1', '/').replaceAll('~0', '~')]
  return resolveReference(document, found as T)
}
