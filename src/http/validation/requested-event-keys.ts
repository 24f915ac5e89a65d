import type { Catalogue } from '../../catalogue/catalogue.ts'
import { WILDCARD } from '../../domain/permissions.ts'
import { invalidFields, type FieldError } from '../../errors.ts'
import type { RequestedEventKeys } from '../../stream/permissions.ts'

/** Characters of an unknown key that the answer repeats. */
const MAX_SHOWN_LENGTH = 80

/** Parses the parameter `events` into unique event keys; null where it names none. Throws 422 naming every wrong one. */
export function requestedEventKeys(text: string | undefined, catalogue: Catalogue): RequestedEventKeys {
  if (text === undefined || text.trim() === '') return null
  const keys = [...new Set(text.split(',').map((key) => key.trim()))]
  const errors = keys.flatMap((key) => errorsOf(key, keys.length, catalogue))
  if (errors.length > 0) throw invalidFields(errors)
  return keys
}

function errorsOf(key: string, count: number, catalogue: Catalogue): FieldError[] {
  const pointer = '/events'
  if (key === WILDCARD) {
    if (count === 1) return []
    return [{ pointer, code: 'wildcard_not_alone', detail: '"*" means every event and must stand alone.' }]
  }
  if (catalogue.find(key) !== undefined) return []
  const shown = JSON.stringify(key.slice(0, MAX_SHOWN_LENGTH))
  return [{ pointer, code: 'unknown_event_key', detail: `There is no event key ${shown}.` }]
}
