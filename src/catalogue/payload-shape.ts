import Type from 'typebox'
import type { Static, TSchema } from 'typebox'

/** The shape of one event key's `data`: JSON schema 2020-12, and an example that fits it. */
export type PayloadShape = { readonly schema: TSchema; readonly example: object }

/**
 * Pairs a schema with an example that the compiler checks against it. Objects stay open: the spec (6.3)
 * lists the known fields, and a producer may send more.
 */
export function payloadShape<Schema extends TSchema>(
  schema: Schema,
  example: Static<Schema> & object,
): PayloadShape {
  return { schema, example }
}

/** ISO 8601 timestamp in UTC. */
export const utcTimestamp = Type.String({
  format: 'date-time',
  pattern: '^[0-9T:.-]+Z$',
  description: 'ISO 8601 date and time in UTC',
})

/** ISO 8601 timestamp in UTC with milliseconds. */
export const utcTimestampWithMs = Type.String({
  format: 'date-time',
  pattern: '^[0-9T:-]+\\.[0-9][0-9][0-9]Z$',
  description: 'ISO 8601 date and time in UTC, with milliseconds',
})

/** An IPv4 or IPv6 address. Not a union, which names a wrong value once per member. */
export const ipAddress = Type.Unsafe<string>({
  type: 'string',
  description: 'IPv4 or IPv6 address',
  if: { pattern: '^[^:]*:' },
  then: { format: 'ipv6' },
  else: { format: 'ipv4' },
})

/** ISO 8601 timestamp or null, as one schema, so that a wrong value is reported once. */
export const timestampOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' })

/** A device or tag identifier: hexadecimal digits of either case. */
export const hexadecimal = Type.String({ pattern: '^[0-9A-Fa-f]+$' })
