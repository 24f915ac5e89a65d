import Type from 'typebox'
import { ENUMERATIONS } from './enumerations.ts'
import { hexadecimal, payloadShape, timestampOrNull } from './payload-shape.ts'
import type { PayloadShape } from './payload-shape.ts'

const nfcTag = Type.Object({
  id: Type.String(),
  uid: hexadecimal,
  type: Type.Optional(Type.Enum([...ENUMERATIONS['nfc-tag'].type])),
  balance: Type.Optional(Type.Number()),
  blockedAt: Type.Optional(timestampOrNull),
  customerId: Type.Optional(Type.String()),
})

/** Payloads of the `nfc-tag` family (spec 6.3, enumerations 2.4). */
export const nfcTagPayloads: Readonly<Record<string, PayloadShape>> = {
  'nfc-tag:presented': payloadShape(nfcTag, {
    id: 'tag_40e6bd',
    uid: '04A2B91C5E6180',
    type: 'BRACELET',
    balance: 12.75,
    blockedAt: null,
    customerId: 'cus_8f2c51',
  }),
}
