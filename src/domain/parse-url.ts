/**
 * Returns `text` as a URL; null where it is none. In place of `URL.canParse`: Node 20 answers false for host names with
 * Latin letters such as ü once that call is optimised (its fast path reads Latin-1 as UTF-8), and `URL.parse` is Node 22.
 */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}
