/**
 * Returns the text without characters by which foreign text could control a terminal or reorder a line. They are
 * written as JSON escapes, so JSON stays the same JSON.
 */
export function visibleText(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
