/**
 * The pattern of the one line of text in our own fields that users read. Without control characters, without those that
 * set the direction of what stands around them (Unicode's Bidi_Control), and without half a character, which would be
 * stored as another one.
 */
export const PLAIN_TEXT_PATTERN =
  '^[^\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]*$'

/** The pattern in words, for errors and documents. */
export const PLAIN_TEXT_RULE = 'without control characters and without those that set the direction of text'

/** Ids that others give and that are stored as text and logged. */
export const VISIBLE_ASCII_PATTERN = '^[\\x21-\\x7e]+$'

/** Text that PostgreSQL can store. */
export const NO_NUL_PATTERN = '^[^\\u0000]*$'

/** Limits the body of an event, which receivers have to expect, and the `data` that the relay reads. */
export const MAX_EVENT_BYTES = 256 * 1024

const pattern = new RegExp(PLAIN_TEXT_PATTERN, 'u')

export function isPlainText(text: string): boolean {
  return pattern.test(text)
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Returns the HTML that shows the text, also as the value of an attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}

/**
 * One plain address and nothing else: no white space, comma, quote, comment, group or angle bracket by which a mail
 * library could read a second recipient or another header out of it (RFC 5322 allows far more). ASCII, 254 at most.
 */
const PLAIN_ADDRESS =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/

/** Digits at the end are a number to some libraries, and become the address of a machine. */
const NUMERIC_END = /(?:^|[@.])\d+$/

export function isMailAddress(text: string): boolean {
  return text.length <= 254 && PLAIN_ADDRESS.test(text) && !NUMERIC_END.test(text)
}

const RFC_3339 =
  /^(\d{4}-\d\d-\d\d)[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/**
 * True for an instant of RFC 3339 that `Date` reads and writes as one, so without a leap second, and in UTC within the
 * years 0 to 9999.
 */
export function isInstant(text: string): boolean {
  const day = RFC_3339.exec(text)?.[1] ?? ''
  // A day that its month lacks would become one of the next.
  const isDay = new Date(`${day}T00:00:00Z`).getUTCDate() === Number(day.slice(8))
  const year = new Date(text).getUTCFullYear()
  return isDay && year >= 0 && year <= 9_999
}

/** True for a time zone that this Node knows, such as `Europe/Brussels`. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/**
 * These functions read the text of a JSON document that `JSON.parse` has accepted, token by token, so that number spelling,
 * key order and escapes of the producer are preserved.
 */

/** Returns the document without the white space between its tokens. */
export function stripWhiteSpace(json: string): string {
  const parts: string[] = []
  let from = 0
  for (let at = 0; at < json.length;) {
    const char = json.charCodeAt(at)
    if (char === QUOTE) {
      at = endOfString(json, at)
    } else if (char === SPACE || char === TAB || char === LINE_FEED || char === CARRIAGE_RETURN) {
      parts.push(json.slice(from, at))
      from = ++at
    } else {
      at++
    }
  }
  parts.push(json.slice(from))
  return parts.join('')
}

/**
 * Returns the text of the value of member `name` of the outermost object, or null without such a member.
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

/** Returns how deep arrays and objects are nested: 0 for a bare value. Accepts any text. */
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

/** Returns the JSON pointer (RFC 6901) of a member or item below others. */
export function jsonPointer(names: readonly (string | number)[]): string {
  return names.map((name) => `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** Returns JSON pointers of the members that stand twice in one object; `JSON.parse` would keep the last. */
export function duplicateMembers(json: string): string[] {
  const found = new Set<string>()
  // Of each open object the names so far; of each open array null. `at` is the member or item that is read.
  const open: { names: Set<string> | null; at: string | number }[] = []
  for (let at = 0; at < json.length;) {
    const char = json.charCodeAt(at)
    const innermost = open.at(-1)
    if (char === QUOTE) {
      const end = endOfString(json, at)
      if (innermost !== undefined && innermost.names !== null && isMemberName(json, end)) {
        innermost.at = JSON.parse(json.slice(at, end)) as string
        if (innermost.names.has(innermost.at)) found.add(jsonPointer(open.map(({ at }) => at)))
        innermost.names.add(innermost.at)
      }
      at = end
      continue
    }
    if (char === OPEN_BRACE) open.push({ names: new Set(), at: '' })
    if (char === OPEN_BRACKET) open.push({ names: null, at: 0 })
    if (char === CLOSE_BRACE || char === CLOSE_BRACKET) open.pop()
    if (char === COMMA && typeof innermost?.at === 'number') innermost.at++
    at++
  }
  return [...found]
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const SPACE = 0x20
const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Whether the string that ends before `end` is the name of a member: a colon follows. */
function isMemberName(json: string, end: number): boolean {
  let at = end
  while (json.charCodeAt(at) <= SPACE) at++
  return json.charCodeAt(at) === COLON
}

/** Index just after the string that opens at `at`. */
function endOfString(json: string, at: number): number {
  for (let from = at + 1; ;) {
    const quote = json.indexOf('"', from)
    if (quote === -1) return json.length
    // A quote behind an odd number of backslashes is part of the string.
    let first = quote
    while (json.charCodeAt(first - 1) === BACKSLASH) first--
    if ((quote - first) % 2 === 0) return quote + 1
    from = quote + 1
  }
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

/**
 * Returns `text` as one line of at most `maxLength` code points, without characters that hide or reorder others. For
 * untrusted text that users read: names, errors, answers of a server.
 */
export function singleLine(text: string, maxLength: number): string {
  const line = text.replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}\s]+/gu, ' ').trim()
  const points = Array.from(line)
  return points.length <= maxLength ? line : `${points.slice(0, maxLength - 1).join('')}…`
}
