import { readFileSync } from 'node:fs'
import { sql, type Statement } from '../../db/connection/db.ts'

/**
 * One statement of the protocol: a file that can be read, and explained in `psql`, as it is.
 *
 * Some that are prepared have `(SELECT :ids …)` in the place of `:ids`, which hides from PostgreSQL's planner how many
 * there are. Otherwise it takes a plan for this number to be cheaper than one for all, and plans the statement anew each
 * time, which takes longer than to run it. `test/integration/db/plans.test.ts` has all that must keep their plan.
 */
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
