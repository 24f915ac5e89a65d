import { readdirSync } from 'node:fs'
import { bind } from '../../../../src/db/connection/db.ts'
import { loadSql } from '../../../../src/deliveries/protocol/load-sql.ts'

const FOLDER = new URL('../../../../src/deliveries/protocol/', import.meta.url)

/** The statements of the protocol by the text that PostgreSQL gets, each with the names of its parameters in order. */
export const PROTOCOL: ReadonlyMap<string, { file: string; parameters: readonly string[] }> = new Map(
  readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .map((name) => {
      const file = name.replace('.sql', '')
      const { text } = loadSql(file)
      const named = Object.fromEntries(parametersOf(text).map((parameter) => [parameter, parameter]))
      const { text: sent, values } = bind(text, named)
      return [sent, { file, parameters: values as string[] }]
    }),
)

/** Names of the parameters in the text of a statement. */
export function parametersOf(text: string): string[] {
  return [...new Set([...text.matchAll(/(?<!:):([A-Za-z]\w*)/g)].map(([, parameter]) => parameter!))]
}

/**
 * Other statements that take locks, or read what a later statement of their transaction goes by. What is not listed runs
 * along with the step before: no other session sees it before the commit.
 */
const OTHERS: readonly (readonly [RegExp, string])[] = [
  [/^COMMIT/, 'commit'],
  [/^ROLLBACK/, 'rollback'],
  [/pg_advisory_xact_lock/, 'lock webhook'],
  [/^UPDATE incident i SET closed_at/, 'close incident'],
  [/^SELECT id, completed_at::text/, 'find old deliveries'],
  [/^DELETE FROM delivery WHERE id = ANY\(ARRAY/, 'delete old deliveries'],
  [/^WITH chosen AS/, 'stop for erasure'],
  [/^SELECT id FROM delivery\s+WHERE webhook_id = ANY/, 'lock final deliveries'],
]

/** The name of the step that a statement is; null where it runs along with the step before. */
export function stepOf(text: string): string | null {
  const statement = PROTOCOL.get(text)
  if (statement !== undefined) return statement.file
  return OTHERS.find(([pattern]) => pattern.test(text.trim()))?.[1] ?? null
}
