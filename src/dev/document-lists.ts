import { builtInCatalogue } from '../catalogue/built-in-catalogue.ts'
import { COMMANDS } from '../cli/command-line/commands.ts'
import { withOperand } from '../cli/command-line/help.ts'
import { PROBLEMS as DOCTOR_PROBLEMS } from '../cli/doctor/problems.ts'
import { SETTINGS } from '../config/settings.ts'
import { FAILURE_TEXTS } from '../domain/attempt-outcome.ts'
import { PROBLEMS } from '../domain/problems.ts'
import { FIELD_PROBLEMS } from '../json-schema/field-errors.ts'
import { LOG_EVENTS } from '../observability/log-events.ts'

/** Lists of the documents, each from what the code has: one item a line, wrapped at {@link MAX_COLUMNS}. */
const MAX_COLUMNS = 120

export function settingList(): string {
  return listOf(
    Object.values(SETTINGS).map(
      ({ variable, fallback, description }) =>
        `${code(variable)} (${defaultInWords(fallback)}): ${description}`,
    ),
  )
}

function defaultInWords(fallback: string | undefined): string {
  if (fallback === undefined) return 'required'
  return fallback === '' ? 'empty' : code(fallback)
}

export function commandList(): string {
  const commands = COMMANDS.flatMap((entry) => ('commands' in entry ? entry.commands : [entry]))
  return listOf(
    commands.map(
      ({ name, operand, summary }) => `${code(`posthorn ${withOperand(name, operand)}`)}: ${summary}`,
    ),
  )
}

/** By status. */
export function problemList(): string {
  const statuses = [...new Set(Object.values(PROBLEMS).map(({ status }) => status))]
  return statuses
    .map((status) => {
      const problems = Object.entries(PROBLEMS).filter(([, problem]) => problem.status === status)
      const items = problems.map(([name, { cause, cure }]) => `${code(name)}: ${cause} **Cure:** ${cure}`)
      return `#### ${String(status)}\n\n${listOf(items)}`
    })
    .join('\n')
}

export function fieldProblemList(): string {
  return listOf(Object.entries(FIELD_PROBLEMS).map(([name, meaning]) => `${code(name)}: ${meaning}`))
}

export function failureCodeList(): string {
  return listOf(
    Object.entries(FAILURE_TEXTS).map(
      ([name, { cause, cure }]) => `${code(name)}: ${cause} **Cure:** ${cure}`,
    ),
  )
}

/** The codes of each area and level, without the area that they begin with. */
export function doctorCodes(): string {
  const problems = Object.entries(DOCTOR_PROBLEMS).map(([name, { level }]) => {
    const [area = '', problem = ''] = name.split('.')
    return { group: `${code(area)}, ${level}`, text: code(problem) }
  })
  return listOf(grouped(problems).map(([group, codes]) => `${group}: ${codes.join(', ')}`))
}

/** The level is shown where it is not `warn`. */
export function logEventList(): string {
  return listOf(
    Object.entries(LOG_EVENTS).map(
      ([name, [level, text]]) => `${code(name)}${level === 'warn' ? '' : ` (${level})`}: ${text}`,
    ),
  )
}

/** As much of a payload schema as the document shows. */
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

/** The checked fields of each event key; keys with the same fields are one item. */
export function eventKeyList(): string {
  const checked = builtInCatalogue.eventKeys.flatMap(({ key, schema }) =>
    schema === null ? [] : [{ group: fieldsInWords(schema).join('; '), text: `**${key}**` }],
  )
  return listOf(grouped(checked).map(([fields, keys]) => `${keys.join(', ')}: ${fields}`))
}

function fieldsInWords(schema: object, path = ''): string[] {
  const { properties = {}, required = [] } = schema as Schema
  return Object.entries(properties).flatMap(([name, field]) => {
    const needed = required.includes(name) ? ', required' : ''
    return [
      `${code(path + name)} ${valueInWords(field)}${needed}`,
      ...fieldsInWords(field, `${path}${name}.`),
    ]
  })
}

function valueInWords({ enum: values, format, pattern, type, description, ...field }: Schema): string {
  if (values !== undefined) return `one of ${values.map(code).join(', ')}`
  const isTerse = field.if === undefined && (format === undefined || pattern === undefined)
  if (!isTerse && description !== undefined) return description
  const kind = format === 'date-time' ? 'ISO 8601 date and time with its zone' : [type].flat()[0]
  const form = pattern === undefined ? '' : ` that matches ${code(pattern)}`
  return `${kind}${form}${[type].flat().includes('null') ? ', or null' : ''}`
}

/** The texts of each group, in the order in which the groups first come. */
function grouped(items: { group: string; text: string }[]): [group: string, texts: string[]][] {
  const groups = new Map<string, string[]>()
  for (const { group, text } of items) groups.set(group, [...(groups.get(group) ?? []), text])
  return [...groups]
}

function code(text: string): string {
  return `\`${text}\``
}

/** A Markdown list with an item for each text. */
function listOf(texts: string[]): string {
  return texts.map(listItem).join('')
}

function listItem(text: string): string {
  const lines = ['-']
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`
    if (longer.length > MAX_COLUMNS) lines.push(`  ${word}`)
    else lines[lines.length - 1] = longer
  }
  return `${lines.join('\n')}\n`
}
