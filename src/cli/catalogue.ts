import { readFile, stat } from 'node:fs/promises'
import { builtInCatalogue } from '../catalogue/built-in-catalogue.ts'
import { CatalogueError, type Catalogue } from '../catalogue/catalogue.ts'
import { parseCatalogue, printCatalogue } from '../catalogue/parse-catalogue.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import { slowKeywords } from '../json-schema/slow-keywords.ts'
import type { Arguments, Output } from './command-line/command.ts'

const MAX_FILE_MEGABYTES = 2

/** A file with more problems is wrong as a whole. */
const MAX_SHOWN_PROBLEMS = 100

/**
 * Reads the catalogue of `file`, or returns the built-in one where `file` is empty. Throws ConfigError naming every
 * problem of the file, and `namedBy`: what the file was given with.
 */
export async function loadCatalogue(file: string, namedBy = 'POSTHORN_CATALOGUE'): Promise<Catalogue> {
  if (file === '') return builtInCatalogue
  try {
    return await parseCatalogue(await readTextFile(file, MAX_FILE_MEGABYTES))
  } catch (error) {
    const problems = problemsOf(error)
    const shown = problems.slice(0, MAX_SHOWN_PROBLEMS)
    const rest = problems.length - shown.length
    if (rest > 0) shown.push(`has ${rest} more problems`)
    throw new ConfigError(
      shown.map((problem) => `${file}: ${problem}`),
      `The catalogue (${namedBy})`,
    )
  }
}

function problemsOf(error: unknown): readonly string[] {
  if (error instanceof CatalogueError) return error.problems
  if (error instanceof FileError) return [error.message]
  throw error
}

/** Why a file cannot be used, said of the file: `is a folder`. */
export class FileError extends Error {
  override readonly name = 'FileError'
}

/** Reads a text file of at most `maxMegabytes`. Throws FileError where that is impossible. */
export async function readTextFile(file: string, maxMegabytes: number): Promise<string> {
  const bytes = await readBytes(file, maxMegabytes)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new FileError('is not UTF-8')
  }
}

async function readBytes(file: string, maxMegabytes: number): Promise<Buffer> {
  try {
    const stats = await stat(file)
    if (stats.isDirectory()) throw new FileError('is a folder, not a file')
    // Reading a pipe might never end.
    if (!stats.isFile()) throw new FileError('is not a file')
    if (stats.size > maxMegabytes * 1024 * 1024) throw new FileError(`is larger than ${maxMegabytes} MB`)
    return await readFile(file)
  } catch (error) {
    if (error instanceof FileError) throw error
    throw new FileError(`cannot be read: ${inWords(error)}`, { cause: error })
  }
}

function inWords(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  if (code === 'ENOENT') return 'there is no such file (ENOENT)'
  return code === 'EACCES' ? 'this user has no right to (EACCES)' : code
}

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
