import { badRequest } from '../errors.ts'
import { isUuid } from './ids.ts'

/** Tells our cursors from other text, and their form from forms that may come. */
const MARK = 'd1:'

/** Cursor of a page that ends with the delivery `id`: the next one begins right after it. */
export function deliveryCursor(id: string): string {
  return Buffer.from(MARK + id).toString('base64url')
}

/** The id behind a cursor that `deliveryCursor` gave. Throws 400 for any other text. */
export function parseDeliveryCursor(cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').toString('latin1').slice(MARK.length)
  // Made again and compared: base64 as Node reads it lets other characters and trailing bits pass.
  if (!isUuid(id) || deliveryCursor(id) !== cursor)
    throw badRequest('invalid_cursor', 'cursor is not one that this API gave.')
  return id
}
