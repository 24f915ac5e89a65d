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

const pattern = new RegExp(PLAIN_TEXT_PATTERN, 'u')

export function isPlainText(text: string): boolean {
  return pattern.test(text)
}
