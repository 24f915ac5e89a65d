import type { Row } from './scenario.ts'

/** Rows as text in columns, numbers to the right and words to the left. A value that a row lacks stays empty. */
export function formatTable(title: string, rows: readonly Row[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const columns = names.map((name) => {
    const values = rows.map((row) => row[name] ?? '')
    const cells = [name, ...values.map(String)]
    const width = Math.max(...cells.map(({ length }) => length))
    const isText = values.some((value) => typeof value === 'string' && value !== '')
    return cells.map((cell) => (isText ? cell.padEnd(width) : cell.padStart(width)))
  })
  const lines = [undefined, ...rows].map((_, line) => columns.map((cells) => cells[line]).join('  '))
  return [title, ...lines.map((line) => `  ${line.trimEnd()}`), ''].join('\n')
}
