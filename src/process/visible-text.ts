/**
 * Returns text from outside as it can be printed to a terminal: characters that control it, end the line, hide text or
 * reorder it are written as JSON escapes, so JSON stays the same JSON.
 */
export function visibleText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escaped)
}

/** A character beyond U+FFFF has two escapes. */
function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    const unit = character.charCodeAt(index).toString(16).padStart(4, '0')
    return `\\u${unit}`
  }).join('')
}

/** Describes an error for the terminal, with all causes (one per address that refused). */
export function describeError(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(describeError).join('; ')
  const text = error instanceof Error ? error.message || error.name : String(error)
  // A server's words may be in it; our own messages have several lines.
  return text.split('\n').map(visibleText).join('\n')
}
