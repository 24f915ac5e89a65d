import Type from 'typebox'
import { UNSHAPED_EXAMPLE } from './catalogue.ts'
import { payloadShape, type PayloadShape } from './payload-shape.ts'

/** The enumerations that are complete in spec 2.4, by entity and field. All other fields with values of a list stay open. */
export const ENUMERATIONS = {
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

/**
 * Returns the shape of an event whose `data` spec 6.3 does not show, for an entity with enumerations: its own fields of
 * 2.4 are checked where present. Undefined for other entities and for a part of one, such as `customer:contact:created`.
 */
export function enumeratedShape(key: string): PayloadShape | undefined {
  const [entity = '', ...actions] = key.split(':')
  const fields = Object.entries(ENUMERATIONS).find(([name]) => name === entity)?.[1]
  if (fields === undefined || actions.length !== 1) return undefined
  const values = Object.entries<readonly string[]>(fields)
  const schema = Object.fromEntries(
    values.map(([name, allowed]) => [name, Type.Optional(Type.Enum([...allowed]))]),
  )
  const example = Object.fromEntries(values.map(([name, [first]]) => [name, first]))
  return payloadShape(Type.Object(schema), { ...UNSHAPED_EXAMPLE, ...example })
}
