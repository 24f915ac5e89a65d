import { findEventKey } from '../catalogue/catalogue.ts'
import { WILDCARD } from '../domain/permissions.ts'
import { invalidFields, type FieldError } from '../errors.ts'
import type { AskedKeys } from '../events/stream-rights.ts'

/** A name that is repeated in an answer need not be longer than this. */
const SHOWN_LENGTH = 80

/** The event keys of the parameter `events`, each once; null where it names none. Throws 422 naming every wrong one. */
export function askedKeys(text: string | undefined): AskedKeys {
  if (text === undefined || text.trim() === '') return null
  const keys = [...new Set(text.split(',').map((key) => key.trim()))]
  const errors = keys.flatMap((key) => errorsOf(key, keys.length))
  if (errors.length > 0) throw invalidFields(errors)
  return keys
}

function errorsOf(key: string, count: number): FieldError[] {
  const pointer = '/events'
  if (key === WILDCARD) {
    if (count === 1) return []
    return [{ pointer, code: 'wildcard_not_alone', detail: '"*" means every event and must stand alone.' }]
  }
  if (findEventKey(key) !== undefined) return []
  const shown = JSON.stringify(key.slice(0, SHOWN_LENGTH))
  return [{ pointer, code: 'unknown_event_key', detail: `There is no event key ${shown}.` }]
}
