/** How long an API key is, in visible ASCII characters. */
export const MIN_KEY_LENGTH = 32
export const MAX_KEY_LENGTH = 200

/** How short the keys of the demo organisation may be; they count only in a process that listens on loopback. */
export const MIN_DEMO_KEY_LENGTH = 20

const VISIBLE_ASCII = /^[\x21-\x7e]*$/

/** True for what can be an API key, of at least `minLength` characters. */
export function isKeyShaped(text: string, minLength: number): boolean {
  return text.length >= minLength && text.length <= MAX_KEY_LENGTH && VISIBLE_ASCII.test(text)
}

/** Fewer different characters than that are no random key: one of 32 hexadecimal digits has them but for one in 10,000. */
const MIN_DIFFERENT = 10

/** So many characters have to be neither the one before nor next to it in ASCII: not `aaaa`, not `1234`. */
const MIN_JUMPS = 16

/** True for a key that nobody drew at random: few different characters, long runs, or one part over and over. */
export function isWeakKey(key: string): boolean {
  const codes = Array.from(key, (character) => character.charCodeAt(0))
  const jumps = codes.filter((code, index) => index === 0 || Math.abs(code - (codes[index - 1] ?? code)) > 1)
  return new Set(codes).size < MIN_DIFFERENT || jumps.length < MIN_JUMPS || repeatsItself(key)
}

/** True when a part of at most half the key's length, over and over, is the whole key. */
function repeatsItself(key: string): boolean {
  for (let period = 1; period <= key.length / 2; period++) if (key.startsWith(key.slice(period))) return true
  return false
}
