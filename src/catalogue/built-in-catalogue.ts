import { createCatalogue, type Catalogue, type CatalogueDocument } from './catalogue.ts'
import { enumeratedShape, ENUMERATIONS } from './enumerations.ts'
import { builtInKeys } from './built-in-event-keys.ts'
import {
  type PayloadShape,
  hexadecimal,
  ipAddress,
  payloadShape,
  utcTimestampWithMs,
  utcTimestamp,
  timestampOrNull,
} from './payload-shape.ts'
import Type from 'typebox'

const settingsUpdate = Type.Object({
  openingHoursChanged: Type.Boolean({ description: 'True: revalidate what is cached of the opening hours' }),
})

/** Payloads of the `organizationSettings` family (spec 6.3). */
const organizationSettingsPayloads: Readonly<Record<string, PayloadShape>> = {
  'organizationSettings:updated': payloadShape(settingsUpdate, { openingHoursChanged: true }),
}

const nfcTag = Type.Object({
  id: Type.String(),
  uid: hexadecimal,
  type: Type.Optional(Type.Enum([...ENUMERATIONS['nfc-tag'].type])),
  balance: Type.Optional(Type.Number()),
  blockedAt: Type.Optional(timestampOrNull),
  customerId: Type.Optional(Type.String()),
})

/** Payloads of the `nfc-tag` family (spec 6.3, enumerations 2.4). */
const nfcTagPayloads: Readonly<Record<string, PayloadShape>> = {
  'nfc-tag:presented': payloadShape(nfcTag, {
    id: 'tag_40e6bd',
    uid: '04A2B91C5E6180',
    type: 'BRACELET',
    balance: 12.75,
    blockedAt: null,
    customerId: 'cus_8f2c51',
  }),
}

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

/** Payloads of the `invoice` family (spec 6.3, enumerations 2.4). */
const invoicePayloads: Readonly<Record<string, PayloadShape>> = {
  'invoice:paid': payloadShape(Type.Object({ invoice, payment }), {
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
  }),
}

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
const customerPayloads: Readonly<Record<string, PayloadShape>> = {
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

const adoptionRequest = Type.Object({
  adoptionId: Type.String(),
  efuseId: hexadecimal,
  requestedFromIp: Type.Optional(ipAddress),
  isNew: Type.Optional(Type.Boolean()),
})

/** Payloads of the `controller` family (spec 6.3). */
const controllerPayloads: Readonly<Record<string, PayloadShape>> = {
  'controller:adoption:requested': payloadShape(adoptionRequest, {
    adoptionId: 'ado_21c4e9',
    efuseId: '7cdfa1b2c3d4',
    requestedFromIp: '203.0.113.24',
    isNew: true,
  }),
}

const payloads = new Map<string, PayloadShape>(
  [
    customerPayloads,
    invoicePayloads,
    controllerPayloads,
    nfcTagPayloads,
    organizationSettingsPayloads,
  ].flatMap((family) => Object.entries(family)),
)

/** The event keys that Posthorn has where no document names others (spec 6.1, 6.3). */
const builtInDocument: CatalogueDocument = {
  eventKeys: builtInKeys.map((definition) => {
    const { key } = definition
    return { ...definition, ...(payloads.get(key) ?? enumeratedShape(key)) }
  }),
}

/** The catalogue of a process for which the operator configures no other. */
export const builtInCatalogue: Catalogue = createCatalogue(builtInDocument)
