import { readFile, stat } from 'node:fs/promises'

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
