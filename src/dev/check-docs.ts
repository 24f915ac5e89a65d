import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { builtInCatalogue } from '../catalogue/built-in-catalogue.ts'
import { openApiDocument } from '../http/openapi.ts'
import { routes } from '../http/routes/index.ts'
import { changedLines, openApiSnapshot } from './openapi-snapshot.ts'
import { SETTINGS } from '../config/settings.ts'
import { FAILURE_TEXTS } from '../domain/attempt-outcome.ts'
import { PROBLEMS } from '../domain/problems.ts'

/**
 * `npm run check:docs`: the generated parts of the documents must match the code. Names the lines that do not;
 * `-- --write` brings them up to date.
 */
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Of a line in the lists. */
const MAX_COLUMNS = 120

/**
 * A part of a document, between `<!-- name:start -->` and `<!-- name:end -->`, that is generated from the code. Without a
 * name it is the whole file.
 */
type GeneratedPart = { file: string; name: string | null; render: () => string }

/** Every generated part of the documents. */
const GENERATED_PARTS: readonly GeneratedPart[] = [
  { file: 'docs/configuration.md', name: 'settings', render: settingList },
  { file: 'docs/troubleshooting.md', name: 'failure-codes', render: failureCodeList },
  { file: 'docs/api.md', name: 'problems', render: problemList },
  { file: 'docs/openapi-snapshot.txt', name: null, render: apiSnapshot },
]

/** Where a part begins and ends in the text of its document, without the markers. */
function boundsOf(text: string, file: string, name: string | null): [start: number, end: number] {
  if (name === null) return [0, text.length]
  const [opening, closing] = [`<!-- ${name}:start -->\n\n`, `\n<!-- ${name}:end -->`]
  const start = text.indexOf(opening) + opening.length
  const end = text.indexOf(closing)
  if (start < opening.length || end < start) throw new Error(`${file} lacks the markers of ${name}`)
  return [start, end]
}

function apiSnapshot(): string {
  return `${openApiSnapshot(openApiDocument(routes, builtInCatalogue)).join('\n')}\n`
}

const shouldWrite = process.argv.includes('--write')

for (const { file, name, render } of GENERATED_PARTS) {
  const text = readFileSync(`${ROOT}${file}`, 'utf8')
  const [start, end] = boundsOf(text, file, name)
  const [written, rendered] = [text.slice(start, end), render()]
  if (written === rendered) continue
  if (shouldWrite) {
    writeFileSync(`${ROOT}${file}`, `${text.slice(0, start)}${rendered}${text.slice(end)}`)
    continue
  }
  const changed = changedLines(written.split('\n'), rendered.split('\n')).join('\n')
  const renew = 'If that is intended: npm run check:docs -- --write'
  process.stderr.write(`${file} does not match the code:\n${changed}\n${renew}\n`)
  process.exitCode = 1
}
if (process.exitCode === undefined) process.stdout.write('The generated parts of docs match the code.\n')

function settingList(): string {
  return listOf(
    Object.values(SETTINGS).map(
      ({ variable, fallback, description, parse }) =>
        `${code(variable)} (${defaultInWords(fallback)}${bounds(parse)}): ${description}`,
    ),
  )
}

function defaultInWords(fallback: string | undefined): string {
  if (fallback === undefined) return 'required'
  return fallback === '' ? 'empty' : code(fallback)
}

/** Of a number, as its parser states them when it is given none. */
function bounds(parse: (text: string) => unknown): string {
  try {
    parse('none')
  } catch (error) {
    const [found] = /from \d+ to \d+$/.exec(String(error)) ?? []
    if (found !== undefined) return `; ${found}`
  }
  return ''
}

/** By status. */
function problemList(): string {
  const statuses = [...new Set(Object.values(PROBLEMS).map(({ status }) => status))]
  return statuses
    .map((status) => {
      const problems = Object.entries(PROBLEMS).filter(([, problem]) => problem.status === status)
      const items = problems.map(([name, { cause, cure }]) => `${code(name)}: ${cause} **Cure:** ${cure}`)
      return `#### ${String(status)}\n\n${listOf(items)}`
    })
    .join('\n')
}

function failureCodeList(): string {
  return listOf(
    Object.entries(FAILURE_TEXTS).map(
      ([name, { cause, cure }]) => `${code(name)}: ${cause} **Cure:** ${cure}`,
    ),
  )
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
