// Payloads are shown as they were sent: reading them with JSON.parse would change how numbers are spelled.

/** White space in an empty object or array; with more of it, the two brackets stand on lines of their own. */
const MAX_GAP = 40

const CLOSING = new Map([
  ['{', '}'],
  ['[', ']'],
])

/**
 * Index just after the string that opens at `at`.
 * @param {string} json
 * @param {number} at
 */
function endOfString(json, at) {
  let index = at + 1
  while (index < json.length && json[index] !== '"') index += json[index] === '\\' ? 2 : 1
  return index + 1
}

/**
 * The text of a member of the outermost object. Expects JSON without white space between its tokens.
 * @param {string} json
 * @param {string} name written without escapes
 */
export function memberText(json, name) {
  let depth = 0
  let start = -1
  for (let at = 0; at < json.length; at++) {
    const char = json[at] ?? ''
    if (char === '"') {
      const end = endOfString(json, at)
      if (depth === 1 && start < 0 && json[end] === ':' && json.slice(at, end) === `"${name}"`)
        start = end + 1
      at = end - 1
      continue
    }
    const isEnd = depth === 1 && (char === ',' || char === '}')
    if (start >= 0 && isEnd && at > start) return json.slice(start, at)
    if (CLOSING.has(char)) depth++
    if (char === '}' || char === ']') depth--
  }
  return ''
}

/**
 * The same JSON, a member a line; every token stays as it is.
 * @param {string} json
 */
export function prettyJson(json) {
  /** @type {string[]} */
  const parts = []
  let depth = 0
  const line = () => `\n${'  '.repeat(depth)}`
  for (let at = 0; at < json.length; at++) {
    const char = json[at] ?? ''
    if (char === '"') {
      const end = endOfString(json, at)
      parts.push(json.slice(at, end))
      at = end - 1
    } else if (CLOSING.get(char) !== undefined) {
      const [inside = ''] = /^\s*/.exec(json.slice(at + 1, at + 1 + MAX_GAP)) ?? []
      const end = at + 1 + inside.length
      if (json[end] === CLOSING.get(char)) {
        parts.push(`${char}${json[end] ?? ''}`)
        at = end
        continue
      }
      depth++
      parts.push(char, line())
    } else if (char === '}' || char === ']') {
      depth--
      parts.push(line(), char)
    } else if (char === ',') parts.push(char, line())
    else if (char === ':') parts.push(': ')
    else if (!/\s/.test(char)) parts.push(char)
  }
  return parts.join('')
}
