import { Type, type TSchema } from 'typebox'
import { SUBSCRIBABLE_KEYS } from './built-in-event-keys.ts'
import { createCatalogue, UNSHAPED_EXAMPLE, type Catalogue } from './catalogue.ts'

/** The enumerations that are complete in spec 2.4, by entity and field. All other fields with values of a list stay open. */
const ENUMERATIONS = {
  customer: { customerType: ['STANDARD', 'WORKER_RENTAL_CARAVAN', 'WORKER_TOWING_CARAVAN'] },
  invoice: {
    status: ['DRAFT', 'BOOKED'],
    paymentStatus: ['UNPAID', 'PARTIALLY_PAID', 'PENDING', 'PAID'],
  },
  payment: {
    status: [
      'PENDING',
      'AUTHORIZED',
      'PAID',
      'CANCELED',
      'FAILED',
      'EXPIRED',
      'REFUNDED',
      'PARTIALLY_REFUNDED',
      'CHARGED_BACK',
    ],
    channel: ['MANUAL', 'BANK_TRANSFER', 'TERMINAL', 'ONLINE', 'MANDATE'],
  },
  controller: { type: ['ACCESS', 'SHOWER', 'CHARGE_POINT'] },
  'nfc-tag': { type: ['CARD', 'BRACELET', 'STICKER', 'KEY_FOB'] },
} as const satisfies Record<string, Record<string, readonly string[]>>

const utcTimestamp = Type.String({
  format: 'date-time',
  pattern: '^[0-9T:.-]+Z$',
  description: 'ISO 8601 date and time in UTC',
})

const utcTimestampWithMs = Type.String({
  format: 'date-time',
  pattern: '^[0-9T:-]+\\.[0-9][0-9][0-9]Z$',
  description: 'ISO 8601 date and time in UTC, with milliseconds',
})

/** An IPv4 or IPv6 address. Not a union, which names a wrong value once per member. */
const ipAddress = Type.Unsafe<string>({
  type: 'string',
  description: 'IPv4 or IPv6 address',
  if: { pattern: '^[^:]*:' },
  then: { format: 'ipv6' },
  else: { format: 'ipv4' },
})

/** A device or tag identifier: hexadecimal digits of either case. */
const hexadecimal = Type.String({ pattern: '^[0-9A-Fa-f]+$' })

const invoice = Type.Object({
  id: Type.String(),
  displayId: Type.Optional(Type.String()),
  status: Type.Optional(Type.Enum([...ENUMERATIONS.invoice.status])),
  // Spec 3.2 leaves one of the four values of 2.4.
  paymentStatus: Type.Optional(
    Type.Enum(['PAID'], {
      description:
        'An invoice that was paid. `UNPAID`, `PARTIALLY_PAID` and `PENDING`, which an invoice may have otherwise, are refused here',
    }),
  ),
  amountTotal: Type.Optional(Type.Number()),
  paidDate: Type.Optional(utcTimestamp),
  customerId: Type.Optional(Type.String()),
})

const payment = Type.Object({
  id: Type.String(),
  amount: Type.Optional(Type.Number()),
  status: Type.Optional(Type.Enum([...ENUMERATIONS.payment.status])),
  method: Type.Optional(Type.String({ description: 'Open: `CREDITCARD`, `CASH`, `UNKNOWN` and others' })),
  channel: Type.Optional(Type.Enum([...ENUMERATIONS.payment.channel])),
  provider: Type.Optional(Type.String({ description: 'Open: `MANUAL` or the name of a payment provider' })),
  paidAt: Type.Optional(utcTimestamp),
})

/** What `data` of an event is: JSON schema 2020-12, and an example that fits it. */
type Payload = { schema: TSchema; example: object }

/** The payloads that spec 6.3 shows. Objects stay open: it lists the known fields, and a producer may send more. */
const PAYLOADS: Readonly<Record<string, Payload>> = {
  'customer:created': {
    schema: Type.Object({
      id: Type.String(),
      displayId: Type.Optional(Type.Number()),
      firstName: Type.Optional(Type.String()),
      lastName: Type.Optional(Type.String()),
      email: Type.Optional(Type.String()),
      phone: Type.Optional(Type.String()),
      address: Type.Optional(Type.String()),
      city: Type.Optional(Type.String()),
      zipCode: Type.Optional(Type.String()),
      country: Type.Optional(Type.String({ pattern: '^[A-Z]{2}$', description: 'Two-letter country code' })),
      customerType: Type.Optional(Type.Enum([...ENUMERATIONS.customer.customerType])),
      status: Type.Optional(
        Type.String({ description: 'Open: `DEFAULT` occurs, the other values are not listed' }),
      ),
      createdAt: Type.Optional(utcTimestampWithMs),
      updatedAt: Type.Optional(utcTimestampWithMs),
    }),
    example: {
      id: 'cus_8f2c51',
      displayId: 1042,
      firstName: 'Marie',
      lastName: 'Janssens',
      email: 'marie.janssens@mail.example',
      phone: '+32 470 00 00 00',
      address: 'Dorpsstraat 12',
      city: 'Bredene',
      zipCode: '8450',
      country: 'BE',
      customerType: 'STANDARD',
      status: 'DEFAULT',
      createdAt: '2026-05-04T08:15:30.000Z',
      updatedAt: '2026-05-04T08:15:30.000Z',
    },
  },
  'invoice:paid': {
    schema: Type.Object({ invoice, payment }),
    example: {
      invoice: {
        id: 'inv_5d7710',
        displayId: '2026-0317',
        status: 'BOOKED',
        paymentStatus: 'PAID',
        amountTotal: 248.5,
        paidDate: '2026-05-04T09:02:11.000Z',
        customerId: 'cus_8f2c51',
      },
      payment: {
        id: 'pay_93b0aa',
        amount: 248.5,
        status: 'PAID',
        method: 'CREDITCARD',
        channel: 'TERMINAL',
        provider: 'MANUAL',
        paidAt: '2026-05-04T09:02:11.000Z',
      },
    },
  },
  'controller:adoption:requested': {
    schema: Type.Object({
      adoptionId: Type.String(),
      efuseId: hexadecimal,
      requestedFromIp: Type.Optional(ipAddress),
      isNew: Type.Optional(Type.Boolean()),
    }),
    example: {
      adoptionId: 'ado_21c4e9',
      efuseId: '7cdfa1b2c3d4',
      requestedFromIp: '203.0.113.24',
      isNew: true,
    },
  },
  'nfc-tag:presented': {
    schema: Type.Object({
      id: Type.String(),
      uid: hexadecimal,
      type: Type.Optional(Type.Enum([...ENUMERATIONS['nfc-tag'].type])),
      balance: Type.Optional(Type.Number()),
      blockedAt: Type.Optional(
        // One schema with two types, so that a wrong value is reported once.
        Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' }),
      ),
      customerId: Type.Optional(Type.String()),
    }),
    example: {
      id: 'tag_40e6bd',
      uid: '04A2B91C5E6180',
      type: 'BRACELET',
      balance: 12.75,
      blockedAt: null,
      customerId: 'cus_8f2c51',
    },
  },
  'organizationSettings:updated': {
    schema: Type.Object({
      openingHoursChanged: Type.Boolean({
        description: 'True: revalidate what is cached of the opening hours',
      }),
    }),
    example: { openingHoursChanged: true },
  },
}

/**
 * Returns the payload of a key. Where spec 6.3 does not show it, and the entity has enumerations, its own fields of 2.4
 * are checked where present; undefined for other entities and for a part of one, such as `customer:contact:created`.
 */
function payloadOf(key: string): Payload | undefined {
  const [entity = '', ...actions] = key.split(':')
  const fields = Object.entries(ENUMERATIONS).find(([name]) => name === entity)?.[1]
  if (key in PAYLOADS || fields === undefined || actions.length !== 1) return PAYLOADS[key]
  const values = Object.entries<readonly string[]>(fields)
  const properties = values.map(([name, allowed]) => [name, Type.Optional(Type.Enum([...allowed]))])
  const first = values.map(([name, [value]]) => [name, value])
  return {
    schema: Type.Object(Object.fromEntries(properties) as Record<string, TSchema>),
    example: { ...UNSHAPED_EXAMPLE, ...(Object.fromEntries(first) as object) },
  }
}

/** Has a payload (spec 6.3) but no place in the table: it reaches `*` and the stream, never a subscription by name. */
const UNLISTED = {
  key: 'organizationSettings:updated',
  meaning: 'Organisation settings updated',
  subscribable: false,
}

/** The catalogue of a process for which the operator configures no other (spec 6.1, 6.3). */
export const builtInCatalogue: Catalogue = createCatalogue({
  eventKeys: [...SUBSCRIBABLE_KEYS.map(([key, meaning]) => ({ key, meaning })), UNLISTED].map(
    (definition) => ({
      ...definition,
      ...payloadOf(definition.key),
    }),
  ),
})
