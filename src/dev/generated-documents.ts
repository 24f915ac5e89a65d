import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { failureCodeList, logEventList, problemList, settingList } from './document-lists.ts'

/** A part of a document, between `<!-- name:start -->` and `<!-- name:end -->`, that is generated from the code. */
type GeneratedPart = { file: string; name: string; render: () => string }

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Every generated part of the documents. */
export const GENERATED_PARTS: readonly GeneratedPart[] = [
  { file: 'docs/configuration.md', name: 'settings', render: settingList },
  { file: 'docs/troubleshooting.md', name: 'log', render: logEventList },
  { file: 'docs/troubleshooting.md', name: 'failure-codes', render: failureCodeList },
  { file: 'docs/api.md', name: 'problems', render: problemList },
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
  const [opening, closing] = [`<!-- ${name}:start -->\n\n`, `\n<!-- ${name}:end -->`]
  const start = text.indexOf(opening) + opening.length
  const end = text.indexOf(closing)
  if (start < opening.length || end < start) throw new Error(`${file} lacks the markers of ${name}`)
  return [start, end]
}
