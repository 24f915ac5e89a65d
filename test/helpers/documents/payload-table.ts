/** As much of a payload schema as the documentation shows. */
type Schema = {
  type?: string | string[]
  enum?: string[]
  format?: string
  pattern?: string
  description?: string
  if?: object
  required?: string[]
  properties?: Record<string, Schema>
}

/** The rows of a payload's table in docs/receiving.md: field, what it has to be, and whether it has to be there. */
export function payloadTable(schema: object, path = ''): string[][] {
  const { properties = {}, required = [] } = schema as Schema
  return Object.entries(properties).flatMap(([name, field]) => {
    const row = [`\`${path}${name}\``, inWords(field), required.includes(name) ? 'yes' : 'no']
    return [row, ...payloadTable(field, `${path}${name}.`)]
  })
}

function inWords({ enum: values, format, pattern, type, description, ...field }: Schema): string {
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ')
  const isTerse = field.if === undefined && (format === undefined || pattern === undefined)
  if (!isTerse && description !== undefined) return description
  const kind = format === 'date-time' ? 'ISO 8601 date and time with its zone' : [type].flat()[0]
  const form = pattern === undefined ? '' : ` that matches \`${pattern}\``
  return `${kind}${form}${[type].flat().includes('null') ? ', or null' : ''}`
}
