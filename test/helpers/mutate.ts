import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * Returns the text with `from`, a text or a pattern without groups, replaced.
 *
 * @throws Error, with `what` the text is, where `from` does not occur exactly once
 */
export function replaceOnce(text: string, from: string | RegExp, to: string, what: string): string {
  const parts = text.split(from)
  if (parts.length !== 2) throw new Error(`${what} has ${parts.length - 1} times: ${String(from)}`)
  return parts.join(to)
}

/** Imports `entry` from a copy of a folder of sources in which texts are replaced. */
export async function importMutated(
  folder: URL,
  entry: string,
  changes: readonly { file: string; from: string; to: string }[],
): Promise<unknown> {
  const copy = mkdtempSync(join(tmpdir(), 'posthorn-mutant-'))
  try {
    writeFileSync(join(copy, 'package.json'), '{"type":"module"}')
    symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(copy, 'node_modules'))
    for (const name of readdirSync(folder)) {
      const mutated = changes
        .filter(({ file }) => file === name)
        .reduce(
          (text, { from, to }) => replaceOnce(text, from, to, name),
          readFileSync(new URL(name, folder), 'utf8'),
        )
      // What lies outside of the folder is imported as it is.
      const text = mutated.replaceAll(
        /from '(\.\.\/[^']+)'/g,
        (_, path: string) => `from '${new URL(path, folder).href}'`,
      )
      writeFileSync(join(copy, name), text)
    }
    return await import(pathToFileURL(join(copy, entry)).href)
  } finally {
    rmSync(copy, { recursive: true })
  }
}
