import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** A file of the repository, by its path from the root. */
export function readDocument(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8')
}

/** Fragments of a document's headings, as they are written in links. */
export function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

/** The cells of each row of the first table below a heading, without its head. */
export function tableBelow(text: string, heading: string): string[][] {
  const lines = text.split('\n')
  if (!lines.includes(heading)) throw new Error(`no heading ${heading}`)
  const below = lines.slice(lines.indexOf(heading) + 1)
  const start = below.findIndex((line) => line.startsWith('|'))
  const length = below.slice(start).findIndex((line) => !line.startsWith('|'))
  return below.slice(start + 2, start + length).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}
