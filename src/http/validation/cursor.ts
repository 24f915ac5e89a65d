import { badRequest } from '../../problem-error.ts'

/** The cursors of one kind of list. */
export type Cursor = {
  /** The name of their schema. */
  title: string
  /** A regular expression of exactly the cursors that `parse` takes. */
  pattern: string
  /** Returns the cursor of the page that begins after the row `id`. */
  after(id: string): string
  /** Returns the id in a cursor. Throws 400 for text that `after` did not make. */
  parse(cursor: string): string
}

/** The digits of an id of ours, in their groups. */
const UUID_DIGITS = '([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})'
const PLATFORM_ID = '([A-Za-z0-9_-]{1,64})'

export const deliveryCursor = cursorOf('DeliveryCursor', 'd1', UUID_DIGITS, '-')
export const eventCursor = cursorOf('EventCursor', 'e1', UUID_DIGITS, '-')
export const incidentCursor = cursorOf('IncidentCursor', 'i1', UUID_DIGITS, '-')
export const retryJobCursor = cursorOf('RetryJobCursor', 'r1', UUID_DIGITS, '-')
export const auditCursor = cursorOf('AuditCursor', 'a1', UUID_DIGITS, '-')
export const operatorWebhookCursor = cursorOf('OperatorWebhookCursor', 'w1', UUID_DIGITS, '-')
export const organisationCursor = cursorOf('OrganisationCursor', 'o1', PLATFORM_ID)
export const memberCursor = cursorOf('MemberCursor', 'm1', PLATFORM_ID)

/** `prefix` names the list and the version of the format; the groups of an id follow, without their `separator`. */
function cursorOf(title: string, prefix: string, groups: string, separator = ''): Cursor {
  const pattern = `^${prefix}${groups}$`
  return {
    title,
    pattern,
    after: (id) => prefix + (separator === '' ? id : id.replaceAll(separator, '')),
    parse(cursor) {
      const [, ...found] = new RegExp(pattern).exec(cursor) ?? []
      if (found.length === 0)
        throw badRequest(
          'invalid_cursor',
          'The cursor is no nextCursor of this list. Without it the first page comes.',
        )
      return found.join(separator)
    },
  }
}
