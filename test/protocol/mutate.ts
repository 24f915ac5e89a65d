import { readFileSync } from 'node:fs'
import { loadSql } from '../../src/deliveries/protocol/load-sql.ts'
import type { Rewrite } from './database.ts'
import type { Mutant } from './mutants.ts'
import { sentText } from './statement-text.ts'

/** Returns what puts the mutant in the place of its statement. Throws where its text does not occur exactly once. */
export function mutate({ file, name, text, by }: Mutant): Rewrite {
  const isProtocol = !file.endsWith('.ts')
  const original = isProtocol
    ? loadSql(file).text
    : readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
  if (original.split(text).length !== 2)
    throw new Error(`the mutant "${file}: ${name}" does not match its statement any more`)
  if (!isProtocol) return (statement) => statement.replace(text, () => by)
  const [from, to] = [sentText(file), sentText(file, (whole) => whole.replace(text, () => by))]
  return (statement) => (statement === from ? to : statement)
}
