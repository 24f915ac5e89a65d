import { builtInCatalogue } from '../catalogue/built-in-catalogue.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { printCatalogue } from '../catalogue/parse-catalogue.ts'
import { loadConfig } from '../config/load.ts'
import { slowKeywords } from '../json-schema/slow-keywords.ts'
import { loadCatalogue } from './catalogue-file.ts'
import type { Arguments, Output } from './command-line/command.ts'

/** `posthorn catalogue check`. Throws ConfigError naming every problem of the file. */
export async function runCatalogueCheck(
  { operand: file, given }: Arguments,
  { print, note }: Output,
): Promise<number> {
  const catalogue = await loadCatalogue(file, 'FILE')
  print(`${file} is a catalogue of ${catalogue.eventKeys.length} event key(s).`)
  for (const line of describeCostlySchemas(catalogue)) print(line)
  if (!given.has('database')) return 0
  const database = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  const [{ describeMissingKeys, findMissingKeys }, { withDatabase }] = await Promise.all([
    import('../process/start-checks.ts'),
    import('./with-database.ts'),
  ])
  const missing = await withDatabase(database, (db) => findMissingKeys(db, catalogue))
  for (const line of describeMissingKeys(missing)) note(line)
  return missing.length === 0 ? 0 : 1
}

/** `posthorn catalogue print`. */
export function runCataloguePrint(_args: Arguments, { print }: Output): Promise<number> {
  print(printCatalogue(builtInCatalogue))
  return Promise.resolve(0)
}

/** Names the schemas whose payloads are checked in a thread, however short they are, and why. */
function describeCostlySchemas({ eventKeys, isCostly }: Catalogue): string[] {
  return eventKeys.flatMap(({ key, schema, example }) => {
    const slow = schema === null ? [] : slowKeywords(schema)
    const why = slow.length === 0 && isCostly(key, example) ? ['its example takes too many checks'] : slow
    return why.map((reason) => `${key} cannot be checked fast, so that its payloads take a thread: ${reason}`)
  })
}

/** `posthorn openapi`. */
export async function runOpenApi(_args: Arguments, { print }: Output): Promise<number> {
  const catalogue = await loadCatalogue(loadConfig(process.env, ['catalogueFile']).catalogueFile)
  const [{ openApiDocument }, { routes }] = await Promise.all([
    import('../http/openapi.ts'),
    import('../http/routes/index.ts'),
  ])
  print(JSON.stringify(openApiDocument(routes, catalogue), null, 2))
  return 0
}
