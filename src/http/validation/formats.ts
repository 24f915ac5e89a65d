import { fullFormats } from 'ajv-formats/dist/formats.js'
import { ACCOUNT_FORMATS } from '../../accounts/account-fields.ts'

/** The formats that schemas of bodies and queries may name. */
export const FORMATS = { ...ACCOUNT_FORMATS, 'date-time': isDateTime }

/** Accepts RFC 3339 that a `Date` can represent, and so no leap second. */
function isDateTime(text: string): boolean {
  const rfc3339 = fullFormats['date-time'] as { validate(text: string): boolean }
  return rfc3339.validate(text) && !Number.isNaN(Date.parse(text))
}
