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
