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

/** A fenced block of a document. */
export type CodeBlock = {
  /** Line of its first fence, from 1. */
  line: number
  /** The nearest heading above, without `#`. */
  heading: string
  /** `sh`, `sql`, …; empty for a plain block. */
  language: string
  /** Its lines without the indentation of the fence, each with its end. */
  text: string
  /** The reason of the mark `<!-- not executed: reason -->` above it; null without one. */
  notExecuted: string | null
}

const FENCE = /^( *)```(\w*)$/
const MARK = /^ *<!-- not executed\b:?(.*?)-->$/

/**
 * Reads the fenced blocks of a Markdown document, in order.
 *
 * @throws Error with the line of a mark that has no reason or no block directly below, or of a block without an end
 */
export function codeBlocksOf(document: string): CodeBlock[] {
  const blocks: CodeBlock[] = []
  const lines = document.split('\n')
  let heading = ''
  let mark: { line: number; reason: string } | null = null
  for (let index = 0; index < lines.length; index++) {
    const text = lines[index] ?? ''
    const line = index + 1
    const [, indent, language = ''] = FENCE.exec(text) ?? []
    if (indent !== undefined) {
      const end = lines.indexOf(`${indent}\`\`\``, line)
      if (end === -1) throw new Error(`line ${line}: the block has no end`)
      const inside = lines.slice(line, end).map((each) => `${each.slice(indent.length)}\n`)
      blocks.push({ line, heading, language, text: inside.join(''), notExecuted: mark?.reason ?? null })
      mark = null
      index = end
      continue
    }
    const [, reason] = MARK.exec(text) ?? []
    if (mark !== null && text.trim() !== '') throw new Error(`line ${mark.line}: no block follows the mark`)
    if (reason !== undefined) {
      if (reason.trim() === '') throw new Error(`line ${line}: the mark has no reason`)
      mark = { line, reason: reason.trim() }
    }
    heading = /^#+ (.+)$/.exec(text)?.[1] ?? heading
  }
  if (mark !== null) throw new Error(`line ${mark.line}: no block follows the mark`)
  return blocks
}
