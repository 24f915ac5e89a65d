import { readFile, stat } from 'node:fs/promises'
import { builtInCatalogue } from '../catalogue/built-in.ts'
import { CatalogueError, type Catalogue } from '../catalogue/catalogue.ts'
import { parseCatalogue } from '../catalogue/parse-catalogue.ts'
import { ConfigError } from '../config/load.ts'

const MAX_FILE_BYTES = 2 * 1024 * 1024

/** A file with more problems is wrong as a whole. */
const MAX_SHOWN_PROBLEMS = 100

/**
 * Reads the catalogue of `file`, or returns the built-in one where `file` is empty. Throws ConfigError naming every
 * problem of the file.
 */
export async function loadCatalogue(file: string): Promise<Catalogue> {
  if (file === '') return builtInCatalogue
  try {
    return await parseCatalogue(await readText(file))
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error
    const shown = error.problems.slice(0, MAX_SHOWN_PROBLEMS)
    const rest = error.problems.length - shown.length
    if (rest > 0) shown.push(`has ${rest} more problems`)
    throw new ConfigError(shown.map((problem) => `${file}: ${problem}`))
  }
}

async function readText(file: string): Promise<string> {
  const bytes = await readBytes(file)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new CatalogueError(['is not UTF-8'])
  }
}

async function readBytes(file: string): Promise<Buffer> {
  try {
    const stats = await stat(file)
    // Reading a pipe might never end.
    if (!stats.isFile()) throw new CatalogueError(['is not a file'])
    if (stats.size > MAX_FILE_BYTES) throw new CatalogueError(['is larger than 2 MB'])
    return await readFile(file)
  } catch (error) {
    if (error instanceof CatalogueError) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new CatalogueError([`cannot be read: ${code}`])
  }
}
