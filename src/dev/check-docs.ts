import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { builtInCatalogue } from '../catalogue/built-in-catalogue.ts'
import { openApiDocument } from '../http/openapi.ts'
import { routes } from '../http/routes/index.ts'
import { failureCodeList, logEventList, problemList, settingList } from './document-lists.ts'
import { changedLines, openApiSnapshot } from './openapi-snapshot.ts'

/**
 * `npm run check:docs`: the generated parts of the documents must match the code. Names the lines that do not;
 * `-- --write` brings them up to date.
 */
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * A part of a document, between `<!-- name:start -->` and `<!-- name:end -->`, that is generated from the code; in a
 * script, between comments of its own. Without a name it is the whole file.
 */
type GeneratedPart = { file: string; name: string | null; render: () => string }

/** Every generated part of the documents. */
const GENERATED_PARTS: readonly GeneratedPart[] = [
  { file: 'docs/configuration.md', name: 'settings', render: settingList },
  { file: 'docs/troubleshooting.md', name: 'log', render: logEventList },
  { file: 'docs/troubleshooting.md', name: 'failure-codes', render: failureCodeList },
  { file: 'docs/api.md', name: 'problems', render: problemList },
  { file: 'docs/openapi-snapshot.txt', name: null, render: apiSnapshot },
  { file: 'src/web/pages/docs/samples.js', name: 'verify', render: verifySamples },
]

/** Where a part begins and ends in the text of its document, without the markers. */
function boundsOf(text: string, file: string, name: string | null): [start: number, end: number] {
  if (name === null) return [0, text.length]
  const marker = (text: string): string => (file.endsWith('.js') ? `// ${text}` : `<!-- ${text} -->`)
  const [opening, closing] = [`${marker(`${name}:start`)}\n\n`, `\n${marker(`${name}:end`)}`]
  const start = text.indexOf(opening) + opening.length
  const end = text.indexOf(closing)
  if (start < opening.length || end < start) throw new Error(`${file} lacks the markers of ${name}`)
  return [start, end]
}

function apiSnapshot(): string {
  return `${openApiSnapshot(openApiDocument(routes, builtInCatalogue)).join('\n')}\n`
}

const FOLDER = fileURLToPath(new URL('../../docs/verify/', import.meta.url))

/** The programs of docs/verify, which tests run, by the name of their language. */
const FILES = { 'Node.js': 'node.mjs', Python: 'python.py', Go: 'go/main.go', Java: 'Verify.java' }

/** Renders the programs as a constant of the pages' scripts. */
function verifySamples(): string {
  const samples = Object.entries(FILES).map(([language, file]) => {
    const program = readFileSync(`${FOLDER}${file}`, 'utf8').trimEnd()
    return `  {\n    language: '${language}',\n    program: \`${program.replace(/[\\`]|\$\{/g, '\\$&')}\`,\n  },\n`
  })
  return `export const VERIFY_SAMPLES = [\n${samples.join('')}]\n`
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
