import { Type } from 'typebox'
import { PERMISSION_PATTERN } from '../domain/permissions.ts'
import { isMailAddress, PLAIN_TEXT_PATTERN, isTimeZone } from '../domain/text-rules.ts'

/** The formats of the fields below, for ajv. */
export const ACCOUNT_FORMATS = { 'time-zone': isTimeZone, 'mail-address': isMailAddress }

/** In what the platform leaves out. */
export const DEFAULT_TIME_ZONE = 'Europe/Brussels'

/** The name of an organisation, a member or a key: one line. */
export const accountName = Type.String({ minLength: 1, maxLength: 200, pattern: PLAIN_TEXT_PATTERN })

/** Plain addresses, which every mail server takes. */
const MAIL_ADDRESS_PATTERN = '^[a-z0-9]+([.+_-][a-z0-9]+)*@([a-z0-9]+\\.)+[a-z]{2,24}$'

// An address goes into mail headers: one plain address, nothing that could be read as more.
const email = Type.String({
  title: 'MailAddress',
  maxLength: 254,
  format: 'mail-address',
  examples: ['info@zon.example'],
  documented: { pattern: MAIL_ADDRESS_PATTERN },
})

/** What the platform says of an organisation, in the seed file and in the operator API. */
export const organisationFields = {
  name: accountName,
  email,
  supportEmail: Type.Optional(
    Type.Unsafe<string | null>({
      ...email,
      title: 'MailAddressOrNull',
      type: ['string', 'null'],
      description: 'Where failure notifications go; without it they go to `email`',
    }),
  ),
  timeZone: Type.Optional(
    Type.String({
      maxLength: 64,
      format: 'time-zone',
      description: `IANA name, for the dates in notifications; \`${DEFAULT_TIME_ZONE}\` without it`,
    }),
  ),
}

/** What it says of a member. */
export const memberFields = {
  name: accountName,
  email,
  fullAccess: Type.Optional(Type.Boolean({ description: 'Holds every permission; false without it' })),
  pushEnabled: Type.Optional(
    Type.Boolean({ description: 'May subscribe browsers to push messages; true without it' }),
  ),
  permissions: Type.Optional(
    Type.Array(Type.String({ maxLength: 100, pattern: PERMISSION_PATTERN }), {
      maxItems: 500,
      description: 'Such as `webhook:read`; none without it',
    }),
  ),
}
