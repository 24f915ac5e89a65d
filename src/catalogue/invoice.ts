import Type from 'typebox'
import { ENUMERATIONS } from './enumerations.ts'
import { payloadShape, utcTimestamp } from './payload-shape.ts'
import type { PayloadShape } from './payload-shape.ts'

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
export const invoicePayloads: Readonly<Record<string, PayloadShape>> = {
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
