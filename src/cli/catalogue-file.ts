import { builtInCatalogue } from '../catalogue/built-in-catalogue.ts'
import { CatalogueError, type Catalogue } from '../catalogue/catalogue.ts'
import { parseCatalogue } from '../catalogue/parse-catalogue.ts'
import { ConfigError } from '../config/load.ts'
import { FileError, readTextFile } from './read-file.ts'

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
