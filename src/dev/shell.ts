/** Quotes a word for a POSIX shell. */
export function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}
