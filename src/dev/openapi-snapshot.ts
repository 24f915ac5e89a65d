/** A list of more event keys or events is only counted: the received events name them. */
const MAX_VARIANTS = 40

type Schema = {
  $ref?: string
  title?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
}

type Content = Record<string, { schema?: Schema }>
type Parameter = { $ref?: string; name: string; in: string; required?: boolean }

type Operation = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: Content }
  responses: Record<string, { $ref?: string; content?: Content }>
}

type Document = {
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: { schemas: Record<string, Schema> }
}

/**
 * Returns the OpenAPI document in lines short enough for a review: each operation with its parameters, statuses and
 * schemas, each received event, and each other schema with its fields. `?` marks what may be absent.
 */
export function openApiSnapshot(document: object): string[] {
  const { paths, webhooks, components } = document as Document
  const operations = Object.entries(paths).flatMap(([path, ofPath]) =>
    Object.entries(ofPath).map(
      ([method, operation]) => `${method.toUpperCase()} ${path} ${describe(operation)}`,
    ),
  )
  const schemas = new Map(
    Object.entries(components.schemas).map(([name, schema]) => [name, `${name}: ${shapeOf(schema)}`]),
  )
  const received = Object.entries(webhooks).map(([key, { post }]) => {
    const name = bodyOf(post.requestBody?.content)
    const schema = schemas.get(name)
    schemas.delete(name)
    return `${key} ${schema ?? name}`
  })
  return [
    '# Operations',
    ...operations.sort(),
    '# Received events',
    ...received,
    '# Schemas',
    ...[...schemas.values()].sort(),
  ]
}

/** Returns the lines that two snapshots do not share, those of the first marked `-`, those of the second `+`. */
export function changedLines(before: readonly string[], after: readonly string[]): string[] {
  const missing = (lines: readonly string[], others: readonly string[], mark: string): string[] =>
    lines.filter((line) => !others.includes(line)).map((line) => `${mark} ${line}`)
  return [...missing(before, after, '-'), ...missing(after, before, '+')]
}

function describe({ operationId, parameters = [], requestBody, responses }: Operation): string {
  const given = parameters
    .filter((parameter) => parameter.in !== 'path')
    .map(({ $ref, name, required }) =>
      $ref === undefined ? optional(name, required === true) : nameOf($ref),
    )
  const answers = Object.entries(responses).map(([status, { $ref, content }]) =>
    [status, $ref === undefined ? bodyOf(content) : ''].filter((part) => part !== '').join(' '),
  )
  const request = [...given, bodyOf(requestBody?.content)].filter((part) => part !== '').join(' ')
  return `${operationId} (${request}) ${answers.join(', ')}`
}

function bodyOf(content: Content = {}): string {
  return Object.values(content)
    .map(({ schema = {} }) => (schema.$ref === undefined ? shapeOf(schema) : nameOf(schema.$ref)))
    .join(' or ')
}

function shapeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  const variants =
    schema.enum?.map((value) => JSON.stringify(value)) ?? (schema.oneOf ?? schema.anyOf)?.map(shapeOf)
  if (variants !== undefined)
    return variants.length > MAX_VARIANTS ? `${variants.length} variants` : variants.join(' | ')
  if (schema.allOf !== undefined) return schema.allOf.map(shapeOf).join(' & ')
  if (schema.properties !== undefined)
    return Object.keys(schema.properties)
      .map((name) => optional(name, schema.required?.includes(name) === true))
      .join(' ')
  const type = [schema.type ?? 'any'].flat().join(' | ')
  return schema.items === undefined
    ? type
    : `${type} of ${schema.items.properties === undefined ? shapeOf(schema.items) : 'objects'}`
}

function optional(name: string, isRequired: boolean): string {
  return isRequired ? name : `${name}?`
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}
