/**
 * Works on the text of a JSON document that `JSON.parse` has accepted, token by token, so that what a producer wrote
 * goes on as it was written: number spelling, key order, escapes.
 */

/** The document without the white space between its tokens; strings are left alone. */
export function stripWhiteSpace(json: string): string {
  const kept: string[] = []
  let from = 0
  for (let at = 0; at < json.length;) {
    const char = json.charCodeAt(at)
    if (char === QUOTE) {
      at = endOfString(json, at)
    } else if (char === SPACE || char === TAB || char === LINE_FEED || char === CARRIAGE_RETURN) {
      kept.push(json.slice(from, at))
      from = ++at
    } else {
      at++
    }
  }
  kept.push(json.slice(from))
  return kept.join('')
}

/**
 * The text of the value of member `name` of the outermost object, or null when it has none.
 * Like `JSON.parse`, the last of several members with the name counts, and names may be written with escapes.
 * Expects a document without white space between tokens.
 */
export function memberText(json: string, name: string): string | null {
  let found: string | null = null
  for (let at = 1; at < json.length && json.charCodeAt(at) === QUOTE;) {
    const colon = endOfString(json, at)
    const end = endOfValue(json, colon + 1)
    if (JSON.parse(json.slice(at, colon)) === name) found = json.slice(colon + 1, end)
    at = end + 1
  }
  return found
}

/** How deep arrays and objects are nested: 0 for a bare value. Counts brackets outside strings; any text will do. */
export function nestingDepth(json: string): number {
  let depth = 0
  let deepest = 0
  for (let at = 0; at < json.length;) {
    const char = json.charCodeAt(at)
    if (char === QUOTE) {
      at = endOfString(json, at)
      continue
    }
    if (char === OPEN_BRACE || char === OPEN_BRACKET) deepest = Math.max(deepest, ++depth)
    if (char === CLOSE_BRACE || char === CLOSE_BRACKET) depth--
    at++
  }
  return deepest
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const SPACE = 0x20
const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Index just after the string that opens at `at`. */
function endOfString(json: string, at: number): number {
  let index = at + 1
  while (index < json.length && json.charCodeAt(index) !== QUOTE) {
    index += json.charCodeAt(index) === BACKSLASH ? 2 : 1
  }
  return index + 1
}

/** Index just after the value that begins at `at`: of the comma or brace that follows it. */
function endOfValue(json: string, at: number): number {
  let depth = 0
  for (let index = at; index < json.length;) {
    const char = json.charCodeAt(index)
    if (char === QUOTE) {
      index = endOfString(json, index)
      continue
    }
    if (depth === 0 && (char === COMMA || char === CLOSE_BRACE)) return index
    if (char === OPEN_BRACE || char === OPEN_BRACKET) depth++
    if (char === CLOSE_BRACE || char === CLOSE_BRACKET) depth--
    index++
  }
  return json.length
}
