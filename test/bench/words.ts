import { randomBytes } from 'node:crypto'

const WORD = /.{6}/g

/**
 * Text of so many bytes that needs no escaping in JSON. It is random, since PostgreSQL compresses values from 2 KB on:
 * a sentence that repeats itself would cost next to nothing there, however long it is.
 */
export function wordsOf(bytes: number): string {
  return randomBytes(bytes).toString('base64').replace(WORD, '$& ').slice(0, bytes)
}
