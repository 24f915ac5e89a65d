import { badRequest } from '../errors.ts'
import { isUuid } from './ids.ts'

/** Cursors of one kind of list: of the page that ends with the row `id`, so that the next one begins right after it. */
export type Cursor = {
  after(id: string): string
  /** The id behind a cursor that `after` gave. Throws 400 for any other text. */
  parse(cursor: string): string
}

export const deliveryCursor = cursorOf('d1:')
export const auditCursor = cursorOf('a1:')

/** `mark` tells these cursors from other text and other lists' cursors, and their form from forms that may come. */
function cursorOf(mark: string): Cursor {
  const after = (id: string): string => Buffer.from(mark + id).toString('base64url')
  return {
    after,
    parse(cursor) {
      const id = Buffer.from(cursor, 'base64url').toString('latin1').slice(mark.length)
      // Made again and compared: base64 as Node reads it lets other characters and trailing bits pass.
      if (!isUuid(id) || after(id) !== cursor)
        throw badRequest('invalid_cursor', 'cursor is not one that this API gave.')
      return id
    },
  }
}
