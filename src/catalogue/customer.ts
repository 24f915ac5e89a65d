import Type from 'typebox'
import { ENUMERATIONS } from './enumerations.ts'
import { payloadShape, utcTimestampWithMs } from './payload-shape.ts'
import type { PayloadShape } from './payload-shape.ts'

const customer = Type.Object({
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
})

/** Payloads of the `customer` family (spec 6.3, enumerations 2.4). */
export const customerPayloads: Readonly<Record<string, PayloadShape>> = {
  'customer:created': payloadShape(customer, {
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
  }),
}
