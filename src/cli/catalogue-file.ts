import { builtInCatalogue } from '../catalogue/built-in-catalogue.ts'
import { CatalogueError, type Catalogue } from '../catalogue/catalogue.ts'
import { parseCatalogue } from '../catalogue/parse-catalogue.ts'
import { ConfigError } from '../config/load.ts'
import { readFile, stat } from 'node:fs/promises'

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
