import { loadSql } from '../../src/deliveries/protocol/load-sql.ts'

const PARAMETER = /(?<!:):([A-Za-z]\w*)/g

/** Returns the text of a statement of the protocol as PostgreSQL gets it, after a change to what its file says. */
export function sentText(file: string, change: (text: string) => string = (text) => text): string {
  const { text } = loadSql(file)
  const names = [...new Set([...text.matchAll(PARAMETER)].map(([, name]) => name!))]
  return change(text).replaceAll(PARAMETER, (_, name: string) => `$${names.indexOf(name) + 1}`)
}
