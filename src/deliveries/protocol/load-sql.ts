import { readFileSync } from 'node:fs'
import { sql, type Statement } from '../../db/db.ts'

/** One statement of the protocol: a file that can be read, and explained in `psql`, as it is. */
export type ProtocolStatement = {
  name: string
  /** As PostgreSQL gets it: without the comments. */
  text: string
  with(parameters: Record<string, unknown>): Statement
}

/** Loads `<name>.sql` of this folder. */
export function loadSql(name: string): ProtocolStatement {
  const file = readFileSync(new URL(`./${name}.sql`, import.meta.url), 'utf8')
  // A quote in a comment would look like the begin of a literal to the binder of named parameters.
  const text: string = file
    .replaceAll(/--.*$/gm, '')
    .replaceAll(/\n\s*\n/g, '\n')
    .trim()
  return { name: name.replaceAll('-', '_'), text, with: (parameters) => sql(text, parameters) }
}
