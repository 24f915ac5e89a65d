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
