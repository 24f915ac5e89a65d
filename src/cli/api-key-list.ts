import type { ApiKeyRow } from '../db/queries/api-key-admin.ts'
import { visibleText } from '../process/visible-text.ts'

const COLUMNS: readonly [title: string, cell: (key: ApiKeyRow) => string][] = [
  ['ID', ({ id }) => id],
  ['PREFIX', ({ prefix }) => `${prefix}…`],
  ['NAME', ({ name }) => name],
  ['MEMBER', ({ memberId }) => memberId],
  ['CREATED', ({ createdAt }) => inSeconds(createdAt)],
  ['LAST USED', ({ lastUsedAt }) => inSeconds(lastUsedAt)],
  ['EXPIRES', ({ expiresAt }) => inSeconds(expiresAt)],
  ['REVOKED', ({ revokedAt }) => inSeconds(revokedAt)],
]

/** Returns the keys as a table, one line each. */
export function describeKeys(keys: readonly ApiKeyRow[]): string {
  const lines = [
    COLUMNS.map(([title]) => title),
    ...keys.map((key) => COLUMNS.map(([, cell]) => visibleText(cell(key)))),
  ]
  const widths = COLUMNS.map((_, column) => Math.max(...lines.map((cells) => lengthOf(cells[column] ?? ''))))
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - lengthOf(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function inSeconds(time: Date | null): string {
  return time === null ? '-' : time.toISOString().replace(/\.\d+Z$/, 'Z')
}

function lengthOf(text: string): number {
  return Array.from(text).length
}
