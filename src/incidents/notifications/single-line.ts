/**
 * Returns `text` as one line of at most `maxLength` code points, without characters that hide or reorder others. For
 * untrusted text that users read: names, errors, answers of a server.
 */
export function singleLine(text: string, maxLength: number): string {
  const line = text.replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}\s]+/gu, ' ').trim()
  const points = Array.from(line)
  return points.length <= maxLength ? line : `${points.slice(0, maxLength - 1).join('')}…`
}
