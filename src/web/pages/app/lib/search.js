/**
 * Returns whether every word of the search is in the text, whatever its case.
 * @param {string} text
 * @param {string} search
 */
export function hasWords(text, search) {
  const lower = text.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word))
}
