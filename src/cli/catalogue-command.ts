import { parseArgs } from 'node:util'
import { builtInCatalogue } from '../catalogue/built-in.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { printCatalogue } from '../catalogue/parse-catalogue.ts'
import { loadConfig } from '../config/load.ts'
import { slowKeywords } from '../json-schema/slow-keywords.ts'
import { loadCatalogue } from './catalogue-file.ts'
import { describeMissingKeys, findMissingKeys } from './missing-keys.ts'
import { UsageError } from './usage-error.ts'
import { withDatabase } from './with-database.ts'

const CATALOGUE_USAGE = [
  'Usage: posthorn catalogue check FILE [--database]',
  '       posthorn catalogue print',
  '',
  'check names every problem of a catalogue, and the schemas that cannot be checked fast; with --database also the',
  'event keys that webhooks subscribe to and that FILE lacks.',
  'print prints the built-in catalogue, to begin with.',
].join('\n')

type Output = { print: (line: string) => void; complain: (line: string) => void }

/** `posthorn catalogue`. Returns the exit code; throws ConfigError or UsageError naming every problem. */
export async function runCatalogueCommand(
  args: readonly string[],
  { print, complain }: Output,
): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { database: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  })
  const [verb, file, ...others] = positionals
  if (values.help === true) {
    print(CATALOGUE_USAGE)
    return 0
  }
  if (verb === 'print') {
    if (file !== undefined || values.database === true)
      throw new UsageError('catalogue print', ['it takes no arguments'])
    print(printCatalogue(builtInCatalogue))
    return 0
  }
  if (verb !== 'check') throw new UsageError('catalogue', ['it takes one of check, print first'])
  if (file === undefined || file === '' || others.length > 0)
    throw new UsageError('catalogue check', ['it takes one FILE'])
  const catalogue = await loadCatalogue(file)
  print(`${file} is a catalogue of ${catalogue.eventKeys.length} event key(s).`)
  for (const line of describeCostlySchemas(catalogue)) print(line)
  if (values.database !== true) return 0
  const database = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  const missing = await withDatabase(database, (db) => findMissingKeys(db, catalogue))
  for (const line of describeMissingKeys(missing)) complain(line)
  return missing.length === 0 ? 0 : 1
}

/** Names the schemas whose payloads are checked in a thread, however short they are, and why. */
function describeCostlySchemas({ eventKeys, isCostly }: Catalogue): string[] {
  return eventKeys.flatMap(({ key, schema, example }) => {
    const slow = schema === null ? [] : slowKeywords(schema)
    const why = slow.length === 0 && isCostly(key, example) ? ['its example takes too many checks'] : slow
    return why.map((reason) => `${key} cannot be checked fast, so that its payloads take a thread: ${reason}`)
  })
}
