import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { COMMANDS } from '../cli/command-line/commands.ts'
import { withOperand } from '../cli/command-line/help.ts'
import { FULL_ACCESS } from '../domain/permissions.ts'
import { FIELD_PROBLEMS } from '../domain/field-problems.ts'
import { PROBLEMS } from '../domain/problems.ts'
import { routes } from '../http/routes/index.ts'
import { SETTINGS } from '../config/settings.ts'
import { verifySamples } from './verify-samples.ts'

/**
 * A part of a document, between `<!-- name:start -->` and `<!-- name:end -->`, that is generated from the code; in a
 * script, between comments of its own.
 */
type GeneratedPart = { file: string; name: string; render: () => string }

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const MAX_COLUMNS = 120

/** Every generated part of the documents. */
export const GENERATED_PARTS: readonly GeneratedPart[] = [
  { file: 'docs/configuration.md', name: 'settings', render: settingsTable },
  { file: 'docs/production.md', name: 'commands', render: commandsTable },
  { file: 'docs/api.md', name: 'routes', render: routesTable },
  { file: 'docs/api.md', name: 'problems', render: problemList },
  { file: 'docs/api.md', name: 'field-problems', render: fieldProblemsTable },
  { file: 'src/web/pages/docs/samples.js', name: 'verify', render: verifySamples },
]

/** The text of a part as it stands in its document, without the markers. */
export function readPart({ file, name }: GeneratedPart): string {
  const text = readFileSync(`${ROOT}${file}`, 'utf8')
  const [start, end] = boundsOf(text, file, name)
  return text.slice(start, end)
}

/** Writes a part into its document, between the markers. */
export function writePart(part: GeneratedPart): void {
  const path = `${ROOT}${part.file}`
  const text = readFileSync(path, 'utf8')
  const [start, end] = boundsOf(text, part.file, part.name)
  writeFileSync(path, `${text.slice(0, start)}${part.render()}${text.slice(end)}`)
}

function boundsOf(text: string, file: string, name: string): [start: number, end: number] {
  const marker = (text: string): string => (file.endsWith('.js') ? `// ${text}` : `<!-- ${text} -->`)
  const [opening, closing] = [`${marker(`${name}:start`)}\n\n`, `\n${marker(`${name}:end`)}`]
  const start = text.indexOf(opening) + opening.length
  const end = text.indexOf(closing)
  if (start < opening.length || end < start) throw new Error(`${file} lacks the markers of ${name}`)
  return [start, end]
}

function settingsTable(): string {
  const rows = Object.values(SETTINGS).map(({ variable, fallback, description }) => [
    code(variable),
    defaultInWords(fallback),
    description,
  ])
  return table(['Variable', 'Default', 'Meaning'], rows)
}

function commandsTable(): string {
  const commands = COMMANDS.flatMap((entry) => ('commands' in entry ? entry.commands : [entry]))
  const rows = commands.map(({ name, operand, summary }) => [
    code(`posthorn ${withOperand(name, operand)}`),
    summary,
  ])
  return table(['Command', 'What it does'], rows)
}

function defaultInWords(fallback: string | undefined): string {
  if (fallback === undefined) return 'required'
  return fallback === '' ? 'empty' : code(fallback)
}

function routesTable(): string {
  const rows = routes.map((route) => [
    code(`${route.method} ${route.path}`),
    permissionInWords(route.access),
    route.summary,
  ])
  return table(['Route', 'Permission', 'What it does'], rows)
}

function permissionInWords(access: (typeof routes)[number]['access']): string {
  if (access.kind === 'open') return 'no key'
  if (access.kind === 'key') return 'any key'
  if (access.kind === 'operator') return `operator key, ${code(access.scope)}`
  if (access.permission === null) return 'any key of the organisation'
  return access.permission === FULL_ACCESS ? 'full access' : code(access.permission)
}

/** A list by status: causes and cures are sentences, which belong in no table. */
function problemList(): string {
  const statuses = [...new Set(Object.values(PROBLEMS).map(({ status }) => status))]
  return statuses
    .map((status) => {
      const items = Object.entries(PROBLEMS)
        .filter(([, problem]) => problem.status === status)
        .map(([name, { cause, cure }]) => listItem(`${code(name)}: ${cause} **Cure:** ${cure}`))
      return `#### ${String(status)}\n\n${items.join('')}`
    })
    .join('\n')
}

function fieldProblemsTable(): string {
  const rows = Object.entries(FIELD_PROBLEMS).map(([name, meaning]) => [code(name), meaning])
  return table(['Code', 'Meaning'], rows)
}

function code(text: string): string {
  return `\`${text}\``
}

/** A Markdown table in the format of prettier: cells padded to the width of their column. */
function table(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((cells) => (cells[column] ?? '').length)),
  )
  const line = (cells: string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |\n`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('')
}

/** One item of a list, wrapped at {@link MAX_COLUMNS}. */
function listItem(text: string): string {
  const lines = ['-']
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`
    if (longer.length > MAX_COLUMNS) lines.push(`  ${word}`)
    else lines[lines.length - 1] = longer
  }
  return `${lines.join('\n')}\n`
}
